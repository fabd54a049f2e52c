"""Compiles the CPU device with the host's g++, once per processor type, into the build cache.

``python -m verify.toolchain.machine_build`` prints ``compile_commands.json``, for editors and clangd.

Each source file has a cache entry of its own, so a killed build resumes where it was and a changed file
costs one compile. The result is a folder with ``libcudart.so.13``, which goes on the loader's path of the
program that is to run on the CPU device, and of no other program.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verify.system.progress import Progress
from verify.system.resources import resource_folder
from verify.system.scratch import plain_link
from verify.toolchain.cache import cached, digest, is_cached
from verify.toolchain.compile import Compilers, StoppedError
from verify.toolchain.machine_sources import MachineBuildError, closure
from verify.toolchain.toolchain import Toolchain, find_toolchain

LIBRARY = "libcudart.so.13"
FOLDERS = ("memory", "events", "exec", "ptx", "isa", "report", "observers", "runtime")
"""Folders of machine/ whose ``.cpp`` files make up the library."""

PROGRESS_SECONDS = 5.0

FLAGS = (
    "-std=c++20",
    "-O3",
    "-fPIC",
    "-g1",
    "-pthread",
    # The machine's arithmetic must be PTX's: no fused operation that the PTX does not contain, no reordering.
    "-ffp-contract=off",
    "-fno-math-errno",
    # Nothing reads floating-point exceptions; without this flag, compare-and-select is not vectorised.
    "-fno-trapping-math",
    "-fvisibility-inlines-hidden",
    # Stored beside each object, and not errors, since newer compilers warn about more; the tests read them.
    "-Wall",
    "-Wextra",
    "-Wshadow",
)

WARNINGS = "warnings.txt"
"""The compiler's warnings about a source file, kept beside its object; usually empty."""

STANDARD_HEADERS = (
    *("algorithm", "array", "atomic", "bit", "charconv", "chrono", "cmath", "condition_variable", "cstddef"),
    *("cstdint", "cstdio", "cstdlib", "cstring", "deque", "fstream", "functional", "limits", "map", "memory"),
    *("mutex", "new", "optional", "set", "shared_mutex", "span", "sstream", "stdexcept", "string"),
    *("string_view", "thread", "type_traits", "unordered_map", "utility", "vector"),
)
"""Included before every source file. Parsing them takes a third of a full build, so that precompiles them."""

FEW_FILES = 6
"""Up to this many files compile faster without a precompiled header."""

_OWN_WARNING = re.compile(r"^.*/machine/.*\.[ch]pp:\d+:\d+: warning: .*$", re.MULTILINE)


def machine_library(progress: Progress | None = None) -> Path:
    """The path of ``libcudart.so.13``, compiled unless cached; the loader's path variables can hold it.

    Safe under concurrent use and killed runs. Raises MachineBuildError.
    """
    plan = _plan(FOLDERS)
    script = plan.folder / "runtime" / "exports.map"
    key = digest([*sorted(plan.keys.values()), script.read_bytes()])

    def build(entry: Path) -> None:
        command = (
            *(str(plan.tools.gxx), "-shared", "-pthread", f"-Wl,-soname,{LIBRARY}", "-Wl,-z,defs"),
            *(f"-Wl,--version-script={script}", "-o", LIBRARY),
            *map(str, _compile_all(plan, progress)),
            "-ldl",
        )
        _run(command, entry, "linking the CPU device")

    entry, _ = cached("machine", key, build)
    return plain_link(entry / LIBRARY)


def machine_program(
    source: Path, folders: Sequence[str] = FOLDERS[:-1], progress: Progress | None = None
) -> Path:
    """A program that uses the machine directly, such as a test: ``source`` linked with ``folders``.

    By default all folders but the runtime's. Raises MachineBuildError.
    """
    source = source.resolve()  # the compiler runs in another folder
    plan = _plan(tuple(folders))
    key = digest([*sorted(plan.keys.values()), *plan.identity, *closure(source, plan.folder)])

    def build(entry: Path) -> None:
        objects = map(str, _compile_all(plan, progress))
        command = (str(plan.tools.gxx), *plan.flags, str(source), *objects, "-ldl", "-o", "program")
        (entry / WARNINGS).write_text(_run(command, entry, source.name))

    entry, _ = cached("machine-program", key, build)
    return entry / "program"


def machine_warnings(progress: Progress | None = None) -> list[str]:
    """What the compiler warns of in the sources of the library. Compiles them. Raises MachineBuildError."""
    return [line for built in _compile_all(_plan(FOLDERS), progress) for line in warnings_beside(built)]


def warnings_beside(built: Path) -> list[str]:
    """What the compiler wrote about the machine's lines in ``built``, an object or a program."""
    return [line.strip() for line in _OWN_WARNING.findall(built.with_name(WARNINGS).read_text())]


def compile_commands() -> list[dict[str, object]]:
    """The entries of ``compile_commands.json``: folder, file and arguments of each compile of the library."""
    plan = _plan(FOLDERS)
    return [
        {
            "directory": str(plan.folder),
            "file": str(source),
            "arguments": [str(plan.tools.gxx), *plan.flags, "-c", str(source), "-o", source.name + ".o"],
        }
        for source in plan.keys
    ]


@dataclass(frozen=True)
class _Plan:
    """What to compile and how. keys: the cache key of each source file's object."""

    tools: Toolchain
    folder: Path
    flags: tuple[str, ...]
    identity: tuple[str, ...]
    keys: dict[Path, str]


_planning = threading.Lock()


def _plan(folders: tuple[str, ...]) -> _Plan:
    """Computed once per process, though every job asks for it, several of them concurrently."""
    with _planning:
        return _planned(folders)


@cache
def _planned(folders: tuple[str, ...]) -> _Plan:
    tools = find_toolchain()
    folder = resource_folder("machine")
    sources = sorted(file for name in folders for file in (folder / name).glob("*.cpp"))
    if tools.gxx is None:
        raise MachineBuildError(tools.missing["g++"])
    include = _cuda_include(tools)
    chosen = (*FLAGS, *processor_flags(str(tools.gxx)))
    flags = (*chosen, f"-I{folder}", "-isystem", str(include))
    # Without the folders' paths, so that another checkout with the same sources shares the build.
    identity = (tools.gxx_version, *chosen, *STANDARD_HEADERS, processor())
    version = (include / "cuda_runtime_api.h").read_bytes()
    read: dict[Path, tuple[bytes, list[Path]]] = {}
    keys = {source: digest([*identity, version, *closure(source, folder, read)]) for source in sources}
    return _Plan(tools, folder, flags, identity, keys)


@cache
def processor_flags(gxx: str) -> tuple[str, ...]:
    """``-march=native`` if the compiler supports this processor, else nothing: slower, but correct."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text("int main() { return 0; }\n")
        command = [gxx, "-march=native", str(source), "-o", str(Path(folder) / "probe")]
        done = subprocess.run(command, capture_output=True, check=False)
    return ("-march=native",) if done.returncode == 0 else ()


@cache
def processor() -> str:
    """What ``-march=native`` stands for: the processor's feature flags, since hosts may share a cache."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return os.uname().machine
    flags = re.search(r"^flags\s*:\s*(.*)$", text, re.MULTILINE)
    return flags[1] if flags else os.uname().machine


def _cuda_include(tools: Toolchain) -> Path:
    include = tools.root / "include" if tools.root is not None else None
    if include is None or not (include / "cuda_runtime_api.h").exists():
        raise MachineBuildError(
            "cuda_runtime_api.h is missing: pip install nvidia-cuda-runtime nvidia-cuda-crt, "
            "or install the CUDA toolkit 13"
        )
    return include


def _compile_all(plan: _Plan, progress: Progress | None) -> list[Path]:
    tools, flags, keys, folder = plan.tools, plan.flags, plan.keys, plan.folder
    report = progress or (lambda line: print(line, file=sys.stderr, flush=True))
    started = time.monotonic()
    done, reported = 0, -PROGRESS_SECONDS
    compilers = Compilers()

    def compile_one(source: Path) -> Path:
        nonlocal done, reported

        def build(entry: Path) -> None:
            command = (str(tools.gxx), *flags, "-include", str(headers), "-c", str(source), "-o", "object.o")
            (entry / WARNINGS).write_text(
                _run(command, entry, str(source.relative_to(folder.parent)), compilers)
            )

        entry, hit = cached("machine-object", keys[source], build)
        done += 1
        elapsed = time.monotonic() - started
        if not hit and elapsed - reported >= PROGRESS_SECONDS:
            reported = elapsed
            report(f"compiling the CPU device, once for this processor: {done} of {len(keys)} files")
        return entry / "object.o"

    # Largest files first, since the last compile to finish determines the total time.
    order = sorted(keys, key=lambda source: -source.stat().st_size)
    missing = sum(not is_cached("machine-object", key) for key in keys.values())
    with (
        tempfile.TemporaryDirectory(prefix="verify-headers-") as scratch,
        ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool,
    ):
        headers = Path(scratch) / "standard.hpp"
        headers.write_text("".join(f"#include <{name}>\n" for name in STANDARD_HEADERS))
        if missing > FEW_FILES:
            report(f"compiling the CPU device, once for this processor: {missing} files")
            precompile = (*flags, "-x", "c++-header", str(headers), "-o", f"{headers}.gch")
            _run((str(tools.gxx), *precompile), Path(scratch), "the standard headers")
        compiling = [pool.submit(compile_one, source) for source in order]
        stopped: StoppedError | None = None
        for one in compiling:
            try:
                one.result()
            except StoppedError as error:
                stopped = error  # the compile that failed raises the cause
            except BaseException:
                compilers.stop()
                raise
        if stopped is not None:
            raise stopped
        objects = dict(zip(order, (one.result() for one in compiling), strict=True))
    return [objects[source] for source in keys]


def _run(command: tuple[str, ...], folder: Path, what: str, compilers: Compilers | None = None) -> str:
    """What the compiler wrote. Raises MachineBuildError where it fails."""
    try:
        code, words = (compilers or Compilers()).run(command, folder, dict(os.environ))
    except OSError as error:
        raise MachineBuildError(f"the CPU device cannot be compiled: {error}") from None
    if code != 0:
        first = next((line for line in words.splitlines() if "error" in line), "")
        cause = f": {first}" if first else ""
        raise MachineBuildError(f"the CPU device does not compile: {what} (exit {code}){cause}\n{words}")
    return words


if __name__ == "__main__":
    print(json.dumps(compile_commands(), indent=1))
