"""Compiles the CPU device with the host's g++, once for this processor, into the build cache.

``python -m verify.toolchain.machine_build`` prints ``compile_commands.json``, for editors and clangd.

Every source file becomes a cache entry of its own, so a killed build goes on where it was and a changed file
costs one compile. The result is a folder with ``libcudart.so.13``, to be put on the loader's path of the
program that is to run on the CPU device, and of nothing else.
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
    # The machine's arithmetic is PTX's: no fused operation that the PTX does not ask for, no reordering.
    "-ffp-contract=off",
    "-fno-math-errno",
    # Nothing looks at floating-point exceptions; without this, selections by comparison are not vectorised.
    "-fno-trapping-math",
    "-fvisibility-inlines-hidden",
    # Kept beside each object, and no error: a newer compiler warns of more. The suite's tests read them.
    "-Wall",
    "-Wextra",
    "-Wshadow",
)

WARNINGS = "warnings.txt"
"""What the compiler wrote about a source file that compiled, beside what was made of it; mostly empty."""

STANDARD_HEADERS = (
    *("algorithm", "array", "atomic", "bit", "charconv", "chrono", "cmath", "condition_variable", "cstddef"),
    *("cstdint", "cstdio", "cstdlib", "cstring", "deque", "fstream", "functional", "limits", "map", "memory"),
    *("mutex", "new", "optional", "set", "shared_mutex", "span", "sstream", "stdexcept", "string"),
    *("string_view", "thread", "type_traits", "unordered_map", "utility", "vector"),
)
"""Put in front of every source file. Reading them is a third of a whole compile, which precompiles them."""

FEW_FILES = 6
"""Files whose compile is over before the headers would be precompiled."""

_OWN_WARNING = re.compile(r"^.*/machine/.*\.[ch]pp:\d+:\d+: warning: .*$", re.MULTILINE)

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_UNFOLLOWED = re.compile(
    rb'^[ \t]*(?:#|%:)[ \t]*include\b(?![ \t]*(?:"[^"\n]+"|<[^>\n]+>))[^\n]*|^[^\n]*__has_include[^\n]*'
    rb"|^[ \t]*#[ \t]*(?:\\\n|/\*)[^\n]*|^[^\n]*\.incbin[^\n]*",
    re.MULTILINE,
)
"""What reads a file that the line above does not show: it has no place in the machine's sources."""


class MachineBuildError(RuntimeError):
    """The CPU device cannot be compiled here; the first line says why, the rest is the compiler's."""


def machine_library(progress: Progress | None = None) -> Path:
    """The finished ``libcudart.so.13``, compiled unless the cache has it, by a path that the loader takes.

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
    """A program of the machine's own, such as a test: ``source`` linked with the parts in ``folders``.

    By default everything but the runtime. Raises MachineBuildError.
    """
    source = source.resolve()  # the compiler runs in another folder
    plan = _plan(tuple(folders))
    key = digest([*sorted(plan.keys.values()), *plan.identity, *_closure(source, plan.folder)])

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
    """Worked out once a process, though every job asks, and several at the same time."""
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
    # Not the folders: another checkout or environment with the same texts shares what is built.
    identity = (tools.gxx_version, *chosen, *STANDARD_HEADERS, processor())
    version = (include / "cuda_runtime_api.h").read_bytes()
    read: dict[Path, tuple[bytes, list[Path]]] = {}
    keys = {source: digest([*identity, version, *_closure(source, folder, read)]) for source in sources}
    return _Plan(tools, folder, flags, identity, keys)


@cache
def processor_flags(gxx: str) -> tuple[str, ...]:
    """``-march=native`` where the compiler knows this processor, else nothing: slower, but right."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text("int main() { return 0; }\n")
        command = [gxx, "-march=native", str(source), "-o", str(Path(folder) / "probe")]
        done = subprocess.run(command, capture_output=True, check=False)
    return ("-march=native",) if done.returncode == 0 else ()


@cache
def processor() -> str:
    """What ``-march=native`` means here: the processor's feature flags, since a cache may be shared."""
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


def _closure(
    source: Path, root: Path, read: dict[Path, tuple[bytes, list[Path]]] | None = None
) -> list[bytes]:
    """The texts of a source file and of all that it includes by quotes, however deep, with their names.

    read: the files that were read before, with what they include; headers are shared by nearly all.
    """
    read = {} if read is None else read
    seen: set[Path] = set()
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        if file not in read:
            text = file.read_bytes()
            if unfollowed := _UNFOLLOWED.search(text):
                line = unfollowed[0].decode(errors="replace").strip()
                raise MachineBuildError(f"{file}: {line!r}: only a plain #include is seen by the build")
            names = [name.decode() for name in _INCLUDE.findall(text)]
            beside = {os.path.normpath(start / name) for name in names for start in (file.parent, root)}
            read[file] = (text, [Path(path) for path in beside if os.path.isfile(path)])
        waiting += read[file][1]
    return [part for file in sorted(seen) for part in (os.path.relpath(file, root).encode(), read[file][0])]


def _compile_all(plan: _Plan, progress: Progress | None) -> list[Path]:
    tools, flags, keys, folder = plan.tools, plan.flags, plan.keys, plan.folder
    say = progress or (lambda line: print(line, file=sys.stderr, flush=True))
    started = time.monotonic()
    done, said = 0, -PROGRESS_SECONDS
    compilers = Compilers()

    def compile_one(source: Path) -> Path:
        nonlocal done, said

        def build(entry: Path) -> None:
            command = (str(tools.gxx), *flags, "-include", str(headers), "-c", str(source), "-o", "object.o")
            (entry / WARNINGS).write_text(
                _run(command, entry, str(source.relative_to(folder.parent)), compilers)
            )

        entry, hit = cached("machine-object", keys[source], build)
        done += 1
        elapsed = time.monotonic() - started
        if not hit and elapsed - said >= PROGRESS_SECONDS:
            said = elapsed
            say(f"compiling the CPU device, once for this processor: {done} of {len(keys)} files")
        return entry / "object.o"

    # The largest files first: the last compile to end decides.
    order = sorted(keys, key=lambda source: -source.stat().st_size)
    missing = sum(not is_cached("machine-object", key) for key in keys.values())
    with (
        tempfile.TemporaryDirectory(prefix="verify-headers-") as scratch,
        ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool,
    ):
        headers = Path(scratch) / "standard.hpp"
        headers.write_text("".join(f"#include <{name}>\n" for name in STANDARD_HEADERS))
        if missing > FEW_FILES:
            say(f"compiling the CPU device, once for this processor: {missing} files")
            precompile = (*flags, "-x", "c++-header", str(headers), "-o", f"{headers}.gch")
            _run((str(tools.gxx), *precompile), Path(scratch), "the standard headers")
        compiling = [pool.submit(compile_one, source) for source in order]
        stopped: StoppedError | None = None
        for one in compiling:
            try:
                one.result()
            except StoppedError as error:
                stopped = error  # by one that failed, which tells why
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
