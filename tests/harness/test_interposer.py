"""The launch-fault interposer before the real runtime, which needs no driver for this."""

from __future__ import annotations

import subprocess
from pathlib import Path

from verify.harness.interposer import build_interposer
from verify.toolchain.toolchain import find_toolchain


def test_an_injected_error_behaves_like_the_runtime_s_own(tmp_path: Path) -> None:
    """Fault: an interposer that the versioned symbols pass by, that fails another call than the chosen one,
    or whose error cudaGetLastError does not know (a launch by <<<>>> would then look like a success)."""
    tools = find_toolchain()
    assert tools.root is not None
    program = tmp_path / "faulty_calls"
    subprocess.run(
        [
            *("g++", "-std=c++17", f"-I{tools.root / 'include'}", "-o", str(program)),
            str(Path(__file__).with_name("faulty_calls.cpp")),
            *(f"-L{tools.library}", "-l:libcudart.so.13", "-ldl"),
        ],
        check=True,
    )
    environment = {**tools.run_environment(), "LD_PRELOAD": str(build_interposer())}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    own, *lines = done.stdout.splitlines()
    own = own.removeprefix("own ")
    assert lines == [
        "first cudaSuccess",
        "second cudaErrorInvalidValue",
        "peek cudaErrorInvalidValue",
        "last cudaErrorInvalidValue",
        f"again {own}",
        "calls 5 cudaFuncSetAttribute",
        "chosen cudaErrorLaunchFailure",
        f"after {own}",
        "calls 2 cudaGetLastError",
        "outside cudaSuccess",
        "calls 0 -",
    ]
    assert done.returncode == 0
