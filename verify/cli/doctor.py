"""``verify doctor``: what this machine can verify, and what is missing."""

from __future__ import annotations

import ctypes.util
import importlib.util
import json
import platform
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from verify.check.parity import MISSING_CUBLAS, MISSING_TORCH, library_path
from verify.cli import options
from verify.cli.console import finish, out
from verify.device.interface import TOOLS
from verify.device.select import devices
from verify.system.exit_code import ExitCode
from verify.toolchain.cache import cache_folder
from verify.toolchain.toolchain import Toolchain, find_toolchain


@dataclass(frozen=True)
class Part:
    """One prerequisite of verification. text: what was found, or what to do."""

    name: str
    ok: bool
    text: str


def doctor(as_json: options.Json = False, tripwires: options.Tripwires = True) -> None:
    """Show what this machine can verify, and what is missing for the rest.

    Exit code 0 if at least one device can run kernels, 3 if none can.
    """
    tools = find_toolchain()
    parts = [*_toolchain_parts(tools), *_device_parts(tripwires), *parity_parts()]
    able = any(p.ok for p in parts if p.name.startswith("device "))
    if as_json:
        out.print_json(json.dumps({"can verify": able, "parts": [vars(p) for p in parts]}))
    else:
        table = Table(show_header=False, pad_edge=False, box=None)
        table.add_column("part", no_wrap=True)
        table.add_column("state", no_wrap=True)
        table.add_column("text", overflow="fold")
        for part in parts:
            state = Text("ok", "green") if part.ok else Text("missing", "yellow")
            table.add_row(part.name, state, part.text)
        out.print(table)
        out.print("this machine can verify" if able and tools.can_build else "this machine cannot verify yet")
    finish(ExitCode.CLEAN if able and tools.can_build else ExitCode.NOT_VERIFIED)


def _toolchain_parts(tools: Toolchain) -> list[Part]:
    def part(name: str, found: object, text: str) -> Part:
        return Part(name, found is not None and name not in tools.missing, tools.missing.get(name, text))

    return [
        Part("python", True, f"{platform.python_version()} on {platform.machine()}"),
        part("g++", tools.gxx, f"{tools.gxx_version} at {tools.gxx}"),
        part("nvcc", tools.nvcc, f"{tools.version} ({tools.origin}) at {tools.nvcc}"),
        part("libcudart", tools.library, f"{tools.library}"),
        part("compute-sanitizer", tools.sanitizer, f"{tools.sanitizer_version} at {tools.sanitizer}"),
        Part("build cache", True, f"{cache_folder()}"),
    ]


def _device_parts(tripwires: bool) -> list[Part]:
    parts = []
    for name, device in devices().items():
        answer = device.available()
        if not answer.ok:
            parts.append(Part(f"device {name}", False, answer.reason))
            continue
        info = device.info()
        memory = f"{info.memory_bytes / 1e9:.0f} GB"
        versions = ", ".join(f"{k} {v}" for k, v in info.versions.items())
        text = f"{info.name}, {info.architecture}, {info.sm_count} SMs, {memory}" + (
            f", {versions}" if versions else ""
        )
        parts.append(Part(f"device {name}", True, text))
        for tool in device.tools if tripwires else ():
            wire = device.tripwire(tool)
            parts.append(Part(f"  {name} {tool}", wire.ok, wire.reason or "reports its planted fault"))
    missing = [t for t in TOOLS if not any(t in d.tools for d in devices().values())]
    return parts + [Part(f"  {t}", False, "no device has it") for t in missing]


def parity_parts() -> list[Part]:
    """The parity oracles available on this machine: torch, and the library of the decode pipeline."""
    torch = importlib.util.find_spec("torch")
    folders = library_path().get("LD_LIBRARY_PATH", "").split(":")
    beside = next((str(f) for d in folders if d for f in Path(d).glob("libcublasLt.so.13*")), None)
    library = beside or ctypes.util.find_library("cublasLt")
    return [
        Part("parity torch", torch is not None, (torch and torch.origin) or MISSING_TORCH),
        Part("parity cuBLASLt", library is not None, library or f"{MISSING_CUBLAS} (GPU only)"),
    ]
