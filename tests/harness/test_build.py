"""Building: what the binary holds, what makes a new one, and what a person reads when it fails."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.guarded_kernel import CONTRACT as GUARDED
from verify.harness.build import (
    Build,
    BuildError,
    architecture_flags,
    build_all,
    build_harness,
    compile_command,
    included_files,
)
from verify.harness.toolchain import find_toolchain


def test_the_binary_takes_its_runtime_from_the_loader(guarded: Build) -> None:
    """Catches a static runtime, which no other device can stand in for."""
    needed = subprocess.run(
        ["readelf", "-d", guarded.binary], capture_output=True, text=True, check=True
    ).stdout
    assert "libcudart.so.13" in needed
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "-W", guarded.binary], capture_output=True, text=True, check=True
    )
    assert "__cudaRegisterFatBinary@libcudart.so.13" in symbols.stdout


def test_the_binary_holds_machine_code_and_readable_ptx(guarded: Build) -> None:
    """Catches a missing half: machine code for the GPU, PTX for the CPU device; and a compressed one."""
    content = guarded.binary.read_bytes()
    assert b".target sm_90" in content, "no plain PTX"
    assert b"guarded_copy" in content
    tools = find_toolchain()
    if tools.cuobjdump is not None:
        listed = subprocess.run(
            [tools.cuobjdump, "-lelf", "-lptx", guarded.binary], capture_output=True, text=True, check=True
        )
        assert "sm_90.cubin" in listed.stdout
        assert "sm_90.ptx" in listed.stdout


def test_the_same_inputs_are_not_compiled_again(guarded: Build) -> None:
    again = build_harness(GUARDED, "sm_90")
    assert (again.cached, again.binary) == (True, guarded.binary)


def test_an_included_file_is_part_of_the_key(tmp_path: Path) -> None:
    """Catches a stale binary after an edit in a header of the production code, also in another folder."""
    (tmp_path / "own").mkdir()
    shutil.copy(GUARDED.directory / "guarded.cu", tmp_path / "guarded.cu")
    header = tmp_path / "own" / "guarded.cuh"
    shutil.copy(GUARDED.directory / "guarded.cuh", header)
    moved = replace(GUARDED, directory=tmp_path, nvcc_flags=("-Iown",))
    assert [f.name for f in included_files(moved)] == ["guarded.cu", "guarded.cuh"]
    first = build_harness(moved, "sm_90")
    header.write_text(header.read_text() + "// edited\n")
    second = build_harness(moved, "sm_90")
    assert not second.cached
    assert first.binary != second.binary


def test_a_compile_error_is_the_compiler_s_own(tmp_path: Path) -> None:
    """Catches a failure without file and line, and a failed build that is kept."""
    (tmp_path / "guarded.cu").write_text("#include <cuda_runtime.h>\nint broken(;\n")
    for _ in range(2):
        with pytest.raises(BuildError, match=r"guarded\.cu\(2\): error") as caught:
            build_all([replace(GUARDED, directory=tmp_path)], "sm_90")
        assert "does not build" in str(caught.value)


@pytest.mark.parametrize("flag", ["-o/x;rm", "--opt=$(id)", "x", "-D'a'", "-I a"])
def test_a_flag_that_is_more_than_an_option_is_refused(flag: str) -> None:
    with pytest.raises(BuildError, match="nvcc_flags"):
        compile_command(replace(GUARDED, nvcc_flags=(flag,)), GUARDED.directory, ["sm_90"], find_toolchain())


def test_architectures_give_code_and_ptx_each() -> None:
    """Catches an architecture that only another one's PTX would serve."""
    assert architecture_flags(["sm_80", "sm_90a"])[1::2] == (
        "arch=compute_80,code=sm_80",
        "arch=compute_80,code=compute_80",
        "arch=compute_90a,code=sm_90a",
        "arch=compute_90a,code=compute_90a",
    )
    with pytest.raises(BuildError, match="sm90"):
        architecture_flags(["sm90"])
