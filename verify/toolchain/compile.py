"""Runs nvcc so that no user-chosen path reaches its shell, and finds out beforehand what it would read.

nvcc passes each of its steps to a shell, with file names in double quotes, and splits lists at commas. So it
runs in a folder whose path needs no quoting, and any path that would need quoting is passed as a symbolic
link with a plain name. In a command such paths are ``Path`` objects.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from verify.system.guard import guarded
from verify.system.process_group import end_group
from verify.system.scratch import PLAIN, plain_folder
from verify.toolchain.cache import digest
from verify.toolchain.toolchain import Toolchain

Command = Sequence[str | Path]

_PLAIN_SUFFIX = re.compile(r"\.\w+")
_MARKER = re.compile(rb'^# \d+ "((?:[^"\\\n]|\\.)*)"', re.MULTILINE)
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_TEMPORARY = re.compile(rb"tmpxft_[0-9a-f]+_[0-9a-f]+-")
_HOST_PASS = tuple(
    word
    for name in ("__CUDA_ARCH__", "CUDA_DOUBLE_MATH_FUNCTIONS", "__CUDA_ARCH_SPECIFIC__")
    for word in ("-Xcompiler", f"-U{name}")
)
"""nvcc -E preprocesses for the device; these undefine its macros, which gives the host's pass."""


class BuildError(RuntimeError):
    """A program does not compile, or cannot be compiled here; the message is the compiler's own."""


class StoppedError(BuildError):
    """A compile that was stopped, or never started, because another one of its build had failed."""


class Compilers:
    """The compiler processes of one build: the first failure stops the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self.failed = False

    def stop(self) -> None:
        """Stop the running compilers; no more will be started."""
        with self._lock:
            self.failed = True
            running = tuple(self._running)
        for process in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGTERM)

    def run(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
        """Run one compiler; returns its exit code and output.

        Raises StoppedError, and OSError when it cannot be started.
        """
        if self.failed:
            raise StoppedError("another file did not compile")
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        with guarded(command, env=environment, cwd=folder, start_new_session=True, **how) as process:
            with self._lock:
                self._running.add(process)
            try:
                printed, errors = process.communicate()
            finally:
                with self._lock:
                    self._running.discard(process)
                end_group(process)
        if process.returncode and self.failed:
            raise StoppedError("another file did not compile")
        if process.returncode:
            self.stop()
        return process.returncode, (errors + printed).decode(errors="replace").strip()


@contextlib.contextmanager
def compile_folder() -> Iterator[Path]:
    """A new folder with a plain name. nvcc's temporary files go there too, so that a kill leaves none."""
    with tempfile.TemporaryDirectory(prefix="verify-compile-", dir=plain_folder()) as name:
        yield Path(name)


def plain_name(path: Path, folder: Path) -> str:
    """A form of ``path`` that is safe in a shell: itself, or a link in ``folder``, the working directory."""
    if PLAIN.fullmatch(str(path)):
        return str(path)
    parts = path.absolute().parts
    last = max(i for i, part in enumerate(parts) if i and not PLAIN.fullmatch(part))
    target = Path(*parts[: last + 1])
    suffix = target.suffix if _PLAIN_SUFFIX.fullmatch(target.suffix) else ""
    link = folder / f"named-{digest([os.fsencode(target)])[:12]}{suffix}"
    with contextlib.suppress(FileExistsError):
        link.symlink_to(target)
    return os.path.join(link.name, *parts[last + 1 :])


def is_includable(path: str) -> bool:
    """Whether ``#include "path"`` names exactly this file."""
    return not any(character in '"\\' or ord(character) < 32 for character in path)


def plain_source(source: Path, folder: Path) -> str | Path:
    """What to compile in ``folder`` for ``source``: itself, or a file with a plain name that includes it by
    its real one, since messages and line information then give the real name."""
    if PLAIN.fullmatch(str(source)) or not is_includable(str(source)):
        return source
    (folder / "program.cu").write_bytes(b'#include "' + os.fsencode(source) + b'"\n')
    return "program.cu"


def run_compiler(
    command: Command, folder: Path, tools: Toolchain, what: str, compilers: Compilers | None = None
) -> None:
    """Run nvcc in ``folder``, a :func:`compile_folder`. Raises BuildError with its output if it fails."""
    words = [plain_name(word, folder) if isinstance(word, Path) else word for word in command]
    compilers = compilers or Compilers()
    try:
        code, output = compilers.run(words, folder, compiler_environment(tools, folder))
    except OSError as error:
        raise BuildError(f"{what} does not build: {words[0]}: {error.strerror}") from None
    if code != 0:
        raise BuildError(f"{what} does not build (exit {code}):\n{in_real_names(output, folder)}")


def in_real_names(output: str, folder: Path) -> str:
    """A compiler's output with the names of links in ``folder`` replaced by the real names."""
    for link in folder.glob("named-*"):
        output = output.replace(link.name, os.readlink(link))
    return output


def compiler_environment(tools: Toolchain, folder: Path) -> dict[str, str]:
    """The toolchain's environment, with temporary files in ``folder`` and a run path to the CUDA runtime.

    A run path, since LD_LIBRARY_PATH takes precedence over it: so another device can be substituted.
    """
    own = {"TMPDIR": str(folder), "LD_RUN_PATH": str(tools.library or "")}
    return {**tools.environment(), **own}


def preprocessed(commands: Sequence[Command], folder: Path, tools: Toolchain, what: str) -> list[bytes]:
    """All inputs of a compile, as a key of its result: the preprocessed text of each pass, and the steps.

    Only the compiler knows what it reads: headers are named by macros, or probed with __has_include.
    commands: the compile command up to its source, once for each architecture with that architecture first,
    the one that nvcc's preprocessor uses.
    Raises BuildError with the compiler's output if it fails.
    """
    environment = compiler_environment(tools, folder)
    how: dict[str, Any] = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL}
    asked = [
        *((*command, "-E") for command in commands),
        (*commands[0], "-E", *_HOST_PASS),
        (*commands[0], "--dryrun"),
    ]
    read = []
    for command in asked:
        words = [plain_name(word, folder) if isinstance(word, Path) else word for word in command]
        done = subprocess.run(words, capture_output=True, check=False, **how)
        if done.returncode != 0:
            output = (done.stderr or done.stdout).decode(errors="replace").strip()
            message = in_real_names(output, folder)
            raise BuildError(f"{what} does not build (exit {done.returncode}):\n{message}")
        read.append(done.stdout)
    # The dry run shows the contents of options files; it also names the folder and temporary files.
    read.append(_TEMPORARY.sub(b"", done.stderr.replace(os.fsencode(folder), b"")))
    if any(b".incbin" in text for text in read):
        read.append(time.time_ns().to_bytes(8))  # the assembler reads a file that only it sees
    return read


def files_read(texts: Sequence[bytes], folder: Path) -> list[Path]:
    """The source files that the line markers of preprocessed texts name, in order."""
    names: dict[bytes, None] = {}
    for text in texts:
        names.update(dict.fromkeys(_MARKER.findall(text)))
    spelled = (_ESCAPED.sub(_unescaped, name) for name in names)
    files = (folder / os.fsdecode(name) for name in spelled if not name.startswith(b"<"))
    return [file for file in files if file.is_file()]


def _unescaped(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8)]) if len(code) == 3 else code
