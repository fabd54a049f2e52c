"""Builds the launch-fault interposer: a preloaded library that makes one runtime call fail."""

from __future__ import annotations

import subprocess
from pathlib import Path

from verify.system.resources import resource_folder
from verify.system.scratch import plain_link
from verify.toolchain.cache import cached, digest
from verify.toolchain.compile import BuildError
from verify.toolchain.toolchain import find_toolchain

_LIBRARY = "launch_fault_interposer.so"


def build_interposer() -> Path:
    """The compiled library, with a path fit for LD_PRELOAD. Raises BuildError with the compiler's output."""
    source = resource_folder("harness_templates") / "launch_fault_interposer.cpp"
    tools = find_toolchain()
    tools.require_build()
    assert tools.root is not None
    command = (
        str(tools.gxx),
        *("-std=c++17", "-O2", "-shared", "-fPIC"),
        f"-I{tools.root / 'include'}",
        *("-o", _LIBRARY, str(source), "-ldl"),
    )

    def build(folder: Path) -> None:
        done = subprocess.run(
            command, cwd=folder, env=tools.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BuildError(f"{source.name} does not build: {done.stderr.strip()}")

    entry, _ = cached("interposer", digest([source.read_bytes(), *command, tools.identity]), build)
    return plain_link(entry / _LIBRARY)
