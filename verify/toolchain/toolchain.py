"""Finds the CUDA toolchain: PyPI wheels of the running Python first, then the system's toolkit.

Wheels land under ``nvidia/cu13`` in site-packages. Their runtime has ``libcudart.so.13`` without the
``libcudart.so`` that ``-cudart shared`` looks for, hence the other way of linking. Nothing here runs a CUDA
program; versions come from each tool's ``--version``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from verify.toolchain.sanitizer_program import sanitizer_program

Origin = Literal["pip", "system"]

NVCC_WHEELS = (
    "nvidia-cuda-nvcc",
    "nvidia-cuda-crt",
    "nvidia-nvvm",
    "nvidia-cuda-runtime",
    "nvidia-cuda-cccl",
    "nvidia-nvtx",
)


class ToolchainError(RuntimeError):
    """No usable compiler; the message says what to install."""


@dataclass(frozen=True)
class Toolchain:
    """The tools that were found. Paths are None where a tool is missing, with one line in ``missing``.

    origin: whether nvcc comes from wheels or from the system. version: nvcc's, such as "13.5". root: the
    toolkit's folder (``nvidia/cu13``, ``/usr/local/cuda``). library: the folder of ``libcudart.so.13``.
    nvtx: the folder that holds ``nvtx3/``.
    sanitizer_version: such as "2026.4.0.0".
    """

    origin: Origin
    nvcc: Path | None
    version: str
    root: Path | None
    library: Path | None
    nvtx: Path | None
    gxx: Path | None
    gxx_version: str
    sanitizer: Path | None
    sanitizer_version: str
    cuobjdump: Path | None
    nvdisasm: Path | None
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def can_build(self) -> bool:
        """True when a harness can be compiled and linked."""
        return not self.missing.keys() & {"nvcc", "g++", "libcudart", "headers", "nvtx"}

    @property
    def release(self) -> tuple[int, int]:
        """nvcc's version as numbers, (0, 0) if there is no nvcc."""
        found = re.match(r"(\d+)\.(\d+)", self.version)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def require_build(self) -> None:
        """Raise ToolchainError, naming what is missing, if a harness cannot be built."""
        if not self.can_build:
            raise ToolchainError("cannot compile: " + "; ".join(self.missing.values()))

    def link_flags(self) -> tuple[str | Path, ...]:
        """Flags that link a program to the shared CUDA runtime, so that a device may substitute its own."""
        assert self.library is not None
        if (self.library / "libcudart.so").exists():
            return ("-cudart", "shared", "-L", self.library)
        return ("-cudart", "none", "-L", self.library, "-l:libcudart.so.13")

    def include_flags(self) -> tuple[str | Path, ...]:
        """Include folders beyond nvcc's own."""
        return ("-I", self.nvtx) if self.nvtx is not None else ()

    def environment(self) -> dict[str, str]:
        """A compile's environment: g++ and nvcc on the path, and none of the caller's compiler settings."""
        folders = [str(tool.parent) for tool in (self.nvcc, self.gxx) if tool is not None]
        kept = {k: v for k, v in os.environ.items() if k in ("HOME", "TMPDIR", "LANG", "LC_ALL", "TERM")}
        # A source that uses __TIME__ must preprocess to the same text every time.
        return {**kept, "PATH": os.pathsep.join([*folders, "/usr/bin", "/bin"]), "SOURCE_DATE_EPOCH": "0"}

    def run_environment(self) -> dict[str, str]:
        """The caller's environment with the CUDA runtime on the loader's path, to run a harness on a GPU."""
        paths = [str(self.library)] if self.library else []
        inherited = os.environ.get("LD_LIBRARY_PATH")
        return {
            **os.environ,
            "LD_LIBRARY_PATH": os.pathsep.join([*paths, *([inherited] if inherited else [])]),
        }

    @property
    def identity(self) -> str:
        """What a build depends on: compiler versions and locations."""
        return f"nvcc {self.version} {self.nvcc} g++ {self.gxx_version} {self.library}"


def find_toolchain(prefer: Origin | Literal["auto"] = "auto") -> Toolchain:
    """Find this machine's toolchain.

    prefer: ``auto`` uses the wheels if they are complete, else the system's toolkit; ``pip`` and ``system``
    use that one only. VERIFY_TOOLCHAIN overrides ``auto``. Tools that take no part in building (the
    sanitizer, cuobjdump) may come from either, wheels first; VERIFY_SANITIZER names a compute-sanitizer, or
    a folder that a wheel was unpacked to. Raises ValueError for a wrong VERIFY_TOOLCHAIN.
    """
    if prefer == "auto":
        wanted = os.environ.get("VERIFY_TOOLCHAIN", "auto")
        if wanted not in ("auto", "pip", "system"):
            raise ValueError(f"VERIFY_TOOLCHAIN: must be pip, system or auto, is {wanted!r}")
    else:
        wanted = prefer
    if wanted != "auto":
        return _find("pip" if wanted == "pip" else "system")
    wheels = _find("pip")
    if wheels.can_build:
        return wheels
    system = _find("system")
    return system if system.can_build or system.nvcc is not None else wheels


def wheel_roots() -> list[Path]:
    """Folders of NVIDIA's wheels in this Python's site-packages, ``nvidia/cu13`` first."""
    roots: list[Path] = []
    for key in ("purelib", "platlib"):
        base = Path(sysconfig.get_paths()[key]) / "nvidia"
        roots.extend([base / "cu13", *(sorted(base.glob("*")) if base.is_dir() else [])])
    return [root for root in dict.fromkeys(roots) if root.is_dir()]


def _system_roots() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    on_path = shutil.which("nvcc")
    if on_path:
        yield _nvcc_home(Path(on_path))
    yield Path("/usr/local/cuda")
    yield from sorted(Path("/usr/local").glob("cuda-*"), reverse=True)


def _nvcc_home(nvcc: Path) -> Path:
    """The toolkit that an nvcc on the path belongs to; it may be a script that starts the real nvcc."""
    resolved = nvcc.resolve()
    home = resolved.parent.parent
    if (home / "include" / "cuda_runtime.h").exists():
        return home
    listed = _output([str(nvcc), "--dryrun", "-x", "cu", "/dev/null"])
    top = re.search(r"_HERE_=(\S+)", listed)
    return Path(top[1]).parent if top else home


@lru_cache(maxsize=8)
def _find_cached(origin: Origin, _key: tuple[str, ...]) -> Toolchain:
    wheels, system = wheel_roots(), list(dict.fromkeys(_system_roots()))
    mine, others = (wheels, system) if origin == "pip" else (system, wheels)
    missing: dict[str, str] = {}

    nvcc, version, problem = _find_nvcc(mine, origin)
    if problem:
        missing["nvcc"] = problem
    root = nvcc.parent.parent if nvcc is not None else None
    if root is not None and not (root / "include" / "cuda_runtime.h").exists():
        real = _nvcc_home(nvcc) if nvcc is not None else root
        root = real
    roots = [root] if root is not None else []

    if root is not None:
        include = root / "include"
        if absent := _absent_headers(include):
            wheels_needed = "nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"
            missing["headers"] = f"{include} lacks {', '.join(absent)}: install {wheels_needed}"
    library = next(
        (d for r in roots for d in (r / "lib64", r / "lib") if (d / "libcudart.so.13").exists()), None
    )
    if library is None:
        missing["libcudart"] = "libcudart.so.13 is missing: pip install nvidia-cuda-runtime"
    nvtx = next(
        (r / "include" for r in [*roots, *mine, *others] if (r / "include/nvtx3/nvToolsExtMem.h").exists()),
        None,
    )
    if nvtx is None:
        missing["nvtx"] = "nvtx3/nvToolsExtMem.h is missing: pip install nvidia-nvtx"

    found_gxx = shutil.which("g++") or shutil.which("g++", path="/usr/bin:/usr/local/bin")
    gxx = Path(found_gxx) if found_gxx else None
    if gxx is None:
        missing["g++"] = "g++ is missing: install the system's C++ compiler (apt install g++)"

    everywhere = [*wheels, *system]
    sanitizer = sanitizer_program(everywhere)
    sanitizer_version = _version(sanitizer, r"[Vv]ersion (\d+(?:\.\d+)+)")
    if sanitizer is None:
        missing["compute-sanitizer"] = (
            "compute-sanitizer is missing: pip install nvidia-cuda-sanitizer-api, or set VERIFY_SANITIZER"
        )
    cuobjdump = _tool(everywhere, "cuobjdump")
    if cuobjdump is None:
        missing["cuobjdump"] = "cuobjdump is missing: pip install nvidia-cuda-cuobjdump"
    nvdisasm = _tool(everywhere, "nvdisasm")
    return Toolchain(
        origin=origin,
        nvcc=nvcc,
        version=version,
        root=root,
        library=library,
        nvtx=nvtx,
        gxx=gxx,
        gxx_version=_output([str(gxx), "-dumpfullversion"]).strip() if gxx else "",
        sanitizer=sanitizer,
        sanitizer_version=sanitizer_version,
        cuobjdump=cuobjdump,
        nvdisasm=nvdisasm,
        missing=missing,
    )


def _absent_headers(include: Path) -> list[str]:
    """The headers of a compile that an include folder lacks."""
    absent = [h for h in ("cuda_runtime.h", "crt/host_config.h") if not (include / h).exists()]
    if not any((folder / "nv" / "target").exists() for folder in (include, include / "cccl")):
        absent.append("nv/target")
    return absent


def _find_nvcc(roots: list[Path], origin: Origin) -> tuple[Path | None, str, str]:
    """nvcc, its version, and why it cannot be used, or empty."""
    nvcc = _tool(roots, "nvcc")
    version = _version(nvcc, r"release (\d+\.\d+)")
    if nvcc is None:
        wheels = f"nvcc is missing: pip install {' '.join(NVCC_WHEELS)}"
        system = "nvcc is missing: install the CUDA toolkit 13 or put its nvcc on PATH"
        return None, version, wheels if origin == "pip" else system
    if int(version.partition(".")[0] or 0) < 13:
        return nvcc, version, f"{nvcc} is release {version or 'unknown'}; 13.0 or later is needed"
    return nvcc, version, ""


def _find(origin: Origin) -> Toolchain:
    watched = ("PATH", "CUDA_HOME", "CUDA_PATH", "VERIFY_SANITIZER")
    return _find_cached(origin, tuple(os.environ.get(name, "") for name in watched))


def _tool(roots: list[Path], name: str) -> Path | None:
    return next((root / "bin" / name for root in roots if (root / "bin" / name).is_file()), None)


def _version(tool: Path | None, pattern: str) -> str:
    if tool is None:
        return ""
    found = re.search(pattern, _output([str(tool), "--version"]))
    return found[1] if found else ""


def _output(command: list[str]) -> str:
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") or "/usr/bin:/bin"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def print_toolchain() -> None:
    """Print what was found and what is missing, for the head of a log."""
    tools = find_toolchain()
    if tools.nvcc is not None:
        print(f"nvcc {tools.version} ({tools.origin}: {tools.nvcc}), g++ {tools.gxx_version}")
    if tools.sanitizer is not None:
        print(f"compute-sanitizer {tools.sanitizer_version} ({tools.sanitizer})")
    for reason in tools.missing.values():
        print(reason)


if __name__ == "__main__":
    print_toolchain()
