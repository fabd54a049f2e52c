"""Builds a harness: renders it, compiles it with nvcc, and caches it under the digest of its inputs."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from verify.contract.discovery import source_file
from verify.contract.model import Contract
from verify.harness.commands import compile_command, compile_flags, core_compile_command, link_command
from verify.harness.explain import explained
from verify.harness.render import render
from verify.system.progress import Progress
from verify.system.resources import resource_folder
from verify.toolchain.cache import cached, digest
from verify.toolchain.compile import (
    BuildError,
    Command,
    Compilers,
    StoppedError,
    compile_folder,
    files_read,
    is_includable,
    plain_name,
    preprocessed,
    run_compiler,
)
from verify.toolchain.toolchain import Toolchain, ToolchainError, find_toolchain


@dataclass(frozen=True)
class Build:
    """A built harness.

    source: the rendered ``.cu``. command: its compile command. cached: whether the cache had it. seconds: the
    compile time, 0 if cached. files: the production file and its own headers, as read by the compiler.
    """

    contract: Contract
    binary: Path
    source: Path
    architectures: tuple[str, ...]
    command: tuple[str, ...]
    toolchain: Toolchain
    cached: bool
    seconds: float
    files: tuple[Path, ...] = ()


def build_harness(
    contract: Contract,
    architecture: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    toolchain: Toolchain | None = None,
    machine_code: bool = True,
) -> Build:
    """Build the harness of a contract, unless it is cached.

    architecture: one or several ``sm_XX``; None for all of the contract's. Each is built as machine code and
    as PTX; without ``machine_code`` only as PTX, which is faster and sufficient for the CPU device. Raises
    BuildError with the compiler's output, or naming what is missing.
    """
    tools = toolchain or find_toolchain()
    try:
        tools.require_build()
    except ToolchainError as error:
        raise BuildError(str(error)) from None
    wanted = (
        (architecture,) if isinstance(architecture, str) else tuple(architecture or contract.architectures)
    )
    command = compile_command(contract, wanted, tools, machine_code)
    started = time.monotonic()
    with compile_folder() as folder:
        source = write_source(contract, folder)
        orders = [[one, *(other for other in wanted if other != one)] for one in wanted]
        passes = [(*compile_flags(contract, order, tools, False), "harness.cu") for order in orders]

        def read() -> list[bytes]:
            try:
                return preprocessed(passes, folder, tools, source_file(contract).name)
            except BuildError as error:
                raise BuildError(explained(str(error), source, contract)) from None

        texts = read()
        key = digest([_core_key(wanted, tools, machine_code), source, *texts, *map(str, command)])

        def build(entry: Path) -> None:
            with _Ticker(f"{contract.name}: compiling for {', '.join(wanted)}", progress):
                _compile(contract, folder, source, wanted, command, tools, machine_code)
            if read() != texts:
                name = source_file(contract).name
                raise BuildError(f"{name}: it or a file it includes changed during the compile: run again")
            shutil.copy(folder / "harness", entry / "harness")
            shutil.copy(folder / "harness.cu", entry / "harness.cu")

        entry, hit = cached("harness", key, build)
        own = tuple(f for f in files_read(texts, folder) if _is_own(f, tools))
    seconds = 0.0 if hit else time.monotonic() - started
    binary, rendered, words = entry / "harness", entry / "harness.cu", tuple(map(str, command))
    return Build(contract, binary, rendered, wanted, words, tools, hit, seconds, own)


def write_source(contract: Contract, folder: Path) -> str:
    """Write ``harness.cu`` and return its text. It includes the production file by absolute path, so that no
    file of the same name on an include path is taken instead."""
    production = source_file(contract).absolute()
    place = str(production) if is_includable(str(production)) else plain_name(production, folder)
    source = render(contract, place)
    (folder / "harness.cu").write_bytes(os.fsencode(source))
    return source


def _is_own(file: Path, tools: Toolchain) -> bool:
    """Whether a file is the user's: not the compiler's, the system's, or the harness's."""
    others = (tools.root, tools.nvtx, Path("/usr"), resource_folder("harness_templates"))
    return file.name != "harness.cu" and not any(o is not None and file.is_relative_to(o) for o in others)


def _compile(
    contract: Contract,
    folder: Path,
    source: str,
    architectures: Sequence[str],
    command: Command,
    tools: Toolchain,
    machine_code: bool,
) -> None:
    """Compile ``harness.cu`` in ``folder`` and, concurrently, the part shared by all kernels; link both."""
    compilers = Compilers()
    with ThreadPoolExecutor(1) as pool:
        core = pool.submit(core_object, architectures, tools, machine_code, compilers)
        try:
            run_compiler(command, folder, tools, source_file(contract).name, compilers)
        except StoppedError:
            core.result()  # its own failure is the cause
            raise
        except BuildError as error:
            raise BuildError(explained(str(error), source, contract)) from None
        objects = [folder / "harness.o", core.result()]
    run_compiler(link_command(objects, tools), folder, tools, source_file(contract).name)


def core_object(
    architectures: Sequence[str],
    tools: Toolchain,
    machine_code: bool = True,
    compilers: Compilers | None = None,
) -> Path:
    """The object file that all harnesses for these architectures share. Raises BuildError."""

    def build(entry: Path) -> None:
        with compile_folder() as own:
            command = core_compile_command(architectures, tools, machine_code)
            run_compiler(command, own, tools, "the harness", compilers)
            shutil.copy(own / "core.o", entry)

    return cached("core", _core_key(architectures, tools, machine_code), build)[0] / "core.o"


def _core_key(architectures: Sequence[str], tools: Toolchain, machine_code: bool) -> str:
    command = core_compile_command(architectures, tools, machine_code)
    return digest([*_template_texts(), *map(str, command), tools.identity])


def build_all(
    contracts: Sequence[Contract],
    architecture: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    jobs: int = 2,
) -> list[Build]:
    """Build several harnesses, ``jobs`` at a time. Raises the first BuildError after all have finished."""
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        waiting = [pool.submit(build_harness, c, architecture, progress) for c in contracts]
    return [one.result() for one in waiting]


def _template_texts() -> list[bytes]:
    folder = resource_folder("harness_templates")
    files = sorted(p for p in folder.iterdir() if p.suffix in (".hpp", ".cuh", ".cu"))
    return [part for file in files for part in (file.name.encode(), file.read_bytes())]


class _Ticker:
    """Reports that a compile has started, and every few seconds that it is still running."""

    def __init__(self, text: str, progress: Progress | None) -> None:
        self._report = progress or (lambda line: print(line, file=sys.stderr, flush=True))
        self._text = text
        self._ended = threading.Event()

    def __enter__(self) -> None:
        started = time.monotonic()
        self._report(self._text)

        def tick() -> None:
            while not self._ended.wait(5.0):
                self._report(f"{self._text} ({time.monotonic() - started:.0f} s)")

        self._thread = threading.Thread(target=tick, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def copy_headers(folder: Path) -> None:
    """Copy the fixed headers that a rendered harness includes, for a self-contained folder."""
    for file in resource_folder("harness_templates").iterdir():
        if file.suffix in (".hpp", ".cuh", ".cu"):
            shutil.copy(file, folder / file.name)
