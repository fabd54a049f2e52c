"""The command lines that compile and link a harness."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from verify.contract.discovery import source_file
from verify.contract.model import Contract
from verify.system.resources import resource_folder
from verify.toolchain.compile import (
    BuildError,
    Command,
)
from verify.toolchain.toolchain import Toolchain

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
"""Launch functions of the runtime whose calls the harness counts (verify_launch_count.cuh)."""

_ARCHITECTURE = re.compile(r"sm_(\d+[af]?)$")
_SAFE_FLAG = re.compile(r"-[\w=.,:+/\-]*")


def compile_command(
    contract: Contract, architectures: Sequence[str], tools: Toolchain, machine_code: bool = True
) -> Command:
    """nvcc's command line from ``harness.cu`` to ``harness.o``, both in its working directory.

    Raises BuildError for an entry of ``nvcc_flags`` that is not a plain option.
    """
    flags = compile_flags(contract, architectures, tools, machine_code)
    return (*flags, "-c", "harness.cu", "-o", "harness.o")


def compile_flags(
    contract: Contract, architectures: Sequence[str], tools: Toolchain, machine_code: bool
) -> Command:
    folders = (*include_folders(contract), source_file(contract).absolute().parent)
    return (
        *_compiler(architectures, tools, machine_code),
        *other_flags(contract),
        *(word for folder in folders for word in ("-I", folder)),
    )


def include_folders(contract: Contract) -> list[Path]:
    """Folders of the contract's own ``-I`` options; they are relative to the contract's file."""
    named = [flag[2:].removeprefix("=") for flag in contract.nvcc_flags if flag.startswith("-I")]
    # nvcc splits lists at commas.
    parts = [part for text in named for part in ([text] if Path(text).is_dir() else text.split(","))]
    return [Path(os.path.abspath(contract.directory / part)) for part in parts if part]


def other_flags(contract: Contract) -> tuple[str, ...]:
    """The contract's options except include folders. Raises BuildError for one that is not plain."""
    others = tuple(flag for flag in contract.nvcc_flags if not flag.startswith("-I"))
    for flag in contract.nvcc_flags:
        if flag == "-I" or (flag in others and not _SAFE_FLAG.fullmatch(flag)) or not flag.isprintable():
            raise BuildError(f"{contract.name}: nvcc_flags: {flag!r} is not a plain option")
    return others


def core_compile_command(
    architectures: Sequence[str], tools: Toolchain, machine_code: bool = True
) -> Command:
    """nvcc's command line for the part that all harnesses share, to ``core.o``."""
    core = resource_folder("harness_templates") / "verify_core.cu"
    compiler = _compiler(architectures, tools, machine_code)
    return (*compiler, *tools.include_flags(), "-c", core, "-o", "core.o")


def link_command(objects: Sequence[Path], tools: Toolchain) -> Command:
    """The command line that links a harness to the shared CUDA runtime, with launches counted."""
    assert tools.nvcc is not None and tools.gxx is not None
    return (
        *(tools.nvcc, "-ccbin", tools.gxx, "-o", "harness"),
        *(f"-Xlinker=--wrap={name}" for name in WRAPPED),
        *objects,
        *tools.link_flags(),
        "-Xlinker=--enable-new-dtags",
        "-ldl",
    )


def _compiler(architectures: Sequence[str], tools: Toolchain, machine_code: bool) -> Command:
    assert tools.nvcc is not None and tools.gxx is not None
    code = architecture_flags(architectures, machine_code)
    return (tools.nvcc, *FIXED_FLAGS, *code, "-ccbin", tools.gxx)


def architecture_flags(architectures: Sequence[str], machine_code: bool = True) -> tuple[str, ...]:
    """nvcc's options for PTX, and optionally machine code, of each architecture.

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
