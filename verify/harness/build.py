"""Builds a harness: renders it, compiles it with nvcc, keeps it in the cache under its contents' digest."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from verify.contract import Contract
from verify.discovery import source_file
from verify.harness.cache import cached, digest
from verify.harness.explain import explained
from verify.harness.render import render
from verify.harness.toolchain import Toolchain, ToolchainError, find_toolchain
from verify.resources import resource_folder

FIXED_FLAGS = ("-std=c++17", "-O3", "-lineinfo", "--no-compress")
WRAPPED = tuple(
    f"{name}{suffix}"
    for name in (
        "__cudaLaunchKernel",
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cudaLaunchCooperativeKernel",
        "cudaGraphLaunch",
    )
    for suffix in ("", "_ptsz")
)
"""Launch functions of the runtime that the harness counts calls of (verify_launch_count.cuh)."""

_ARCHITECTURE = re.compile(r"sm_(\d+[af]?)$")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_SAFE_FLAG = re.compile(r"-[\w=.,:+/\-]*$")

Progress = Callable[[str], None]


class BuildError(RuntimeError):
    """A harness that does not compile, or cannot be compiled here; the message is the compiler's own."""


@dataclass(frozen=True)
class Build:
    """A finished harness.

    source: the rendered ``.cu``. command: its compile. cached: it was there already.
    seconds: what the compile took, 0 when cached.
    """

    contract: Contract
    binary: Path
    source: Path
    architectures: tuple[str, ...]
    command: tuple[str, ...]
    toolchain: Toolchain
    cached: bool
    seconds: float


def build_harness(
    contract: Contract,
    architecture: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    toolchain: Toolchain | None = None,
    machine_code: bool = True,
) -> Build:
    """The harness binary of a contract, compiled unless the cache has it.

    architecture: one or several ``sm_XX``; None for all that the contract names. Each is built as machine
    code and as PTX; without ``machine_code`` as PTX alone, which is quicker and is all that the CPU device
    runs. Raises BuildError with the compiler's words, or with what is missing.
    """
    tools = toolchain or find_toolchain()
    try:
        tools.require_build()
    except ToolchainError as error:
        raise BuildError(str(error)) from None
    wanted = (
        (architecture,) if isinstance(architecture, str) else tuple(architecture or contract.architectures)
    )
    production = source_file(contract).resolve()
    source = render(contract, production.name)
    command = compile_command(contract, production, wanted, tools, machine_code)
    core_command = core_compile_command(wanted, tools, machine_code)
    core_key = digest([*_template_texts(), *core_command, tools.identity])
    key = digest([source, core_key, *_inputs(contract), *command])
    started = time.monotonic()
    what = f"{contract.name}: compiling for {', '.join(wanted)}"

    def build_core(folder: Path) -> None:
        run_compiler(core_command, folder, tools, "the harness")

    def build(folder: Path) -> None:
        (folder / "harness.cu").write_text(source)
        with _Ticker(what, progress), ThreadPoolExecutor(1) as pool:
            core = pool.submit(cached, "core", core_key, build_core)
            try:
                run_compiler(command, folder, tools, production.name)
            except BuildError as error:
                raise BuildError(explained(str(error), source, contract)) from None
            objects = [folder / "harness.o", core.result()[0] / "core.o"]
            run_compiler(link_command(objects, tools), folder, tools, production.name)
            (folder / "harness.o").unlink()

    entry, hit = cached("harness", key, build)
    seconds = 0.0 if hit else time.monotonic() - started
    return Build(contract, entry / "harness", entry / "harness.cu", wanted, command, tools, hit, seconds)


def build_all(
    contracts: Sequence[Contract],
    architecture: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    jobs: int = 2,
) -> list[Build]:
    """Several harnesses, ``jobs`` compilers at a time. Raises the first BuildError when all have ended."""
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        waiting = [pool.submit(build_harness, c, architecture, progress) for c in contracts]
    return [one.result() for one in waiting]


def compile_command(
    contract: Contract,
    production: Path,
    architectures: Sequence[str],
    tools: Toolchain,
    machine_code: bool = True,
) -> tuple[str, ...]:
    """nvcc's command line from ``harness.cu`` to ``harness.o``, both in the folder that it runs in.

    Raises BuildError for a contract's flag that is not a plain option.
    """
    return (
        *_compiler(architectures, tools, machine_code),
        *contract_flags(contract),
        f"-I{resource_folder('harness_templates')}",
        f"-I{production.parent}",
        *("-c", "harness.cu", "-o", "harness.o"),
    )


def contract_flags(contract: Contract) -> tuple[str, ...]:
    """The contract's own options, include folders made absolute: they are relative to the contract's file.

    Raises BuildError for one that is not a plain option.
    """
    for flag in contract.nvcc_flags:
        if not _SAFE_FLAG.match(flag):
            raise BuildError(f"{contract.name}: nvcc_flags: {flag!r} is not a plain option")
    return tuple(
        f"-I{(contract.directory / flag[2:]).resolve()}" if flag.startswith("-I") else flag
        for flag in contract.nvcc_flags
    )


def core_compile_command(
    architectures: Sequence[str], tools: Toolchain, machine_code: bool = True
) -> tuple[str, ...]:
    """nvcc's command line for the part of a harness that is the same for every kernel, to ``core.o``."""
    core = resource_folder("harness_templates") / "verify_core.cu"
    compiler = _compiler(architectures, tools, machine_code)
    return (*compiler, *tools.include_flags(), "-c", str(core), "-o", "core.o")


def link_command(objects: Sequence[Path], tools: Toolchain) -> tuple[str, ...]:
    """The command line that links a harness to the shared runtime, its launches counted."""
    return (
        *(str(tools.nvcc), "-ccbin", str(tools.gxx), "-o", "harness"),
        *(f"-Xlinker=--wrap={name}" for name in WRAPPED),
        *map(str, objects),
        *tools.link_flags(),
        # Found without LD_LIBRARY_PATH, and yet replaced by it: a run path comes after it.
        f"-Xlinker=-rpath={tools.library},--enable-new-dtags",
        "-ldl",
    )


def _compiler(architectures: Sequence[str], tools: Toolchain, machine_code: bool) -> tuple[str, ...]:
    code = architecture_flags(architectures, machine_code)
    return (str(tools.nvcc), *FIXED_FLAGS, *code, "-ccbin", str(tools.gxx))


def architecture_flags(architectures: Sequence[str], machine_code: bool = True) -> tuple[str, ...]:
    """PTX of each architecture, and machine code when it is wanted.

    Raises BuildError for one that is not ``sm_XX``.
    """
    flags: list[str] = []
    for name in architectures:
        number = _ARCHITECTURE.match(name)
        if number is None:
            raise BuildError(f"architecture {name!r} is not of the form sm_90")
        compute = f"compute_{number[1]}"
        codes = (name, compute) if machine_code else (compute,)
        flags += [word for code in codes for word in ("-gencode", f"arch={compute},code={code}")]
    return tuple(flags)


def run_compiler(command: Sequence[str], folder: Path, tools: Toolchain, what: str) -> None:
    """Run a compiler in ``folder``. Raises BuildError with its output when it fails."""
    done = subprocess.run(
        command, cwd=folder, env=tools.environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        words = (done.stderr + done.stdout).strip()
        raise BuildError(f"{what} does not build (exit {done.returncode}):\n{words}")


def included_files(contract: Contract) -> list[Path]:
    """The production file and what it includes, however deep, from beside it or the contract's folders."""
    production = source_file(contract).resolve()
    own = [Path(flag[2:]) for flag in contract_flags(contract) if flag.startswith("-I")]
    seen: dict[Path, None] = {}
    waiting = [production]
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen[file] = None
        for name in _INCLUDE.findall(file.read_bytes()):
            named = name.decode(errors="replace")
            waiting += [(folder / named).resolve() for folder in (file.parent, production.parent, *own)]
    return [production, *sorted(seen.keys() - {production})]


def _inputs(contract: Contract) -> list[bytes]:
    """Names and texts of the files that a harness is compiled from, the fixed part apart."""
    return [part for file in included_files(contract) for part in (str(file).encode(), file.read_bytes())]


def _template_texts() -> list[bytes]:
    folder = resource_folder("harness_templates")
    files = sorted(p for p in folder.iterdir() if p.suffix in (".hpp", ".cuh", ".cu"))
    return [part for file in files for part in (file.name.encode(), file.read_bytes())]


class _Ticker:
    """Says that a compile has begun, and every few seconds that it still runs."""

    def __init__(self, text: str, progress: Progress | None) -> None:
        self._say = progress or (lambda line: print(line, file=sys.stderr, flush=True))
        self._text = text
        self._ended = threading.Event()

    def __enter__(self) -> None:
        started = time.monotonic()
        self._say(self._text)

        def tick() -> None:
            while not self._ended.wait(5.0):
                self._say(f"{self._text} ({time.monotonic() - started:.0f} s)")

        self._thread = threading.Thread(target=tick, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def copy_headers(folder: Path) -> None:
    """Copy the fixed headers that a rendered harness includes, for a folder that builds on its own."""
    for file in resource_folder("harness_templates").iterdir():
        if file.suffix in (".hpp", ".cuh", ".cu"):
            shutil.copy(file, folder / file.name)
