"""Builds a harness again of which only device code has changed: its PTX is compiled, the rest is there.

What the compiler makes of host code does not depend on the bodies of device functions. Its object file holds
the device code in a section of its own, which is exchanged before the link.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from verify.contract.discovery import source_file
from verify.contract.model import Contract
from verify.harness.build import Build, core_object, write_source
from verify.harness.commands import compile_command, link_command
from verify.toolchain.cache import cached, digest
from verify.toolchain.compile import BuildError, Command, compile_folder, run_compiler

OBJCOPY = "objcopy"
_MODULE = re.compile(rb"(?<=_)[0-9a-f]{8}(?=_10_harness_cu_[0-9a-f]{8})")
"""The compiler's name for the source that it compiles, in names of internal linkage. It follows the contents,
and the host asks for kernels by it."""


class ExchangeError(BuildError):
    """The device code of an object file cannot be exchanged: the harness has to be built as a whole."""


@dataclass(frozen=True)
class HostSide:
    """The host code of one kernel's harness, for one or several architectures as PTX. object:
    ``harness.o``."""

    build: Build
    object: Path


def host_side(build: Build) -> HostSide:
    """The host code of a harness that was built as PTX alone. Raises BuildError."""

    def compile_host(entry: Path) -> None:
        with compile_folder() as folder:
            write_source(build.contract, folder)
            command = compile_command(build.contract, build.architectures, build.toolchain, False)
            run_compiler(command, folder, build.toolchain, source_file(build.contract).name)
            shutil.copy(folder / "harness.o", entry)

    entry, _ = cached("mutant", digest(["host", build.binary.parent.name]), compile_host)
    return HostSide(build, entry / "harness.o")


def rebuild_device(host: HostSide, contract: Contract) -> Build:
    """The harness of the same kernel with other bodies of device functions. Raises BuildError, and
    ExchangeError where only a whole build can make it.

    contract: as that of ``host``, with another source.
    """
    before = host.build

    def compile_device(entry: Path) -> None:
        with compile_folder() as folder:
            write_source(contract, folder)
            run_compiler(
                _device_command(contract, before), folder, before.toolchain, source_file(contract).name
            )
            device = _renamed((folder / "harness.fatbin").read_bytes(), host.object.read_bytes())
            (folder / "harness.fatbin").write_bytes(device)
            _exchange(host.object, folder / "harness.fatbin", folder / "harness.o")
            objects = [folder / "harness.o", core_object(before.architectures, before.toolchain, False)]
            run_compiler(
                link_command(objects, before.toolchain), folder, before.toolchain, source_file(contract).name
            )
            shutil.copy(folder / "harness", entry)
            shutil.copy(folder / "harness.cu", entry)

    text = source_file(contract).read_bytes()
    entry, hit = cached("mutant", digest(["device", before.binary.parent.name, text]), compile_device)
    binary, source = entry / "harness", entry / "harness.cu"
    return Build(
        contract,
        binary,
        source,
        before.architectures,
        before.command,
        before.toolchain,
        hit,
        0.0,
        before.files,
    )


def _device_command(contract: Contract, before: Build) -> Command:
    flags = compile_command(contract, before.architectures, before.toolchain, False)[:-4]
    return (*flags, "-fatbin", "harness.cu", "-o", "harness.fatbin")


def _renamed(device: bytes, host: bytes) -> bytes:
    """Device code under the module's name that the host asks for."""
    asked, given = set(_MODULE.findall(host)), set(_MODULE.findall(device))
    if not given:
        return device
    if len(asked) != 1 or len(given) != 1:
        raise ExchangeError(f"the harness is compiled as {len(given)} modules, {len(asked)} are asked for")
    return _MODULE.sub(asked.pop(), device)


def _exchange(host: Path, device: Path, result: Path) -> None:
    command = (OBJCOPY, "--update-section", f".nv_fatbin={device}", str(host), str(result))
    try:
        done = subprocess.run(command, capture_output=True, check=False, text=True)
    except OSError as error:
        raise ExchangeError(f"objcopy cannot be started: {error.strerror}") from None
    if done.returncode != 0:
        raise ExchangeError(f"objcopy: {done.stderr.strip()}")
