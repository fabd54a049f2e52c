"""Building: what the binary holds, what makes a new one, and what a person reads when it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.guarded_kernel import CONTRACT as GUARDED
from verify.contract.model import Contract
from verify.device.program import compile_program
from verify.harness.build import Build, build_all, build_harness
from verify.harness.commands import architecture_flags, compile_command
from verify.toolchain.compile import BuildError, Compilers, StoppedError
from verify.toolchain.toolchain import find_toolchain


def test_the_binary_gets_its_runtime_from_the_loader(guarded: Build) -> None:
    """Fault: a static runtime, which no other device can stand in for."""
    needed = subprocess.run(
        ["readelf", "-d", guarded.binary], capture_output=True, text=True, check=True
    ).stdout
    assert "libcudart.so.13" in needed
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "-W", guarded.binary], capture_output=True, text=True, check=True
    )
    assert "__cudaRegisterFatBinary@libcudart.so.13" in symbols.stdout


def test_the_binary_has_machine_code_and_readable_ptx(guarded: Build) -> None:
    """Fault: a missing half: machine code for the GPU, PTX for the CPU device; and a compressed one."""
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


def test_the_same_inputs_are_compiled_once(guarded: Build) -> None:
    again = build_harness(GUARDED, "sm_90")
    assert (again.cached, again.binary) == (True, guarded.binary)


@pytest.fixture
def key_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Contract], str]:
    """The key that a harness is kept under, without its compile."""
    keys: list[str] = []

    def kept(kind: str, key: str, build: object) -> tuple[Path, bool]:
        keys.append(key)
        return tmp_path, True

    def key(contract: Contract) -> str:
        monkeypatch.setattr("verify.harness.build.cached", kept)
        build_harness(contract, ("sm_80", "sm_90"))
        return keys[-1]

    return key


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ('#include "own.cuh"', ()),
        ("#define HEADER <own.cuh>\n#include HEADER", ()),
        ('#include /* its own */ "own.cuh"', ()),
        ('#  include \\\n "own.cuh"', ()),
        ("", ("-include=own.cuh",)),
        ("", ("-Iown", "-include=own.cuh")),
        ('#if __has_include("own.cuh")\n#include "own.cuh"\n#endif', ()),
        ("#define AS_TEXT(x) #x\n#define NAMED(x) AS_TEXT(x.cuh)\n#include NAMED(own)", ()),
        ('#ifndef __CUDA_ARCH__\n#include "own.cuh"\n#endif', ()),
        ('#if __CUDA_ARCH__ == 800\n#include "own.cuh"\n#endif', ()),
        ('#if __CUDA_ARCH__ == 900\n#include "own.cuh"\n#endif', ()),
    ],
)
def test_every_included_file_is_part_of_the_key(
    tmp_path: Path, key_of: Callable[[Contract], str], line: str, flags: tuple[str, ...]
) -> None:
    """Fault: the old binary is judged after an edit in a header, since it is not seen to be included."""
    kernel = (GUARDED.directory / "guarded.cu").read_text()
    (tmp_path / "guarded.cu").write_text(f"{line}\n{kernel}")
    shutil.copy(GUARDED.directory / "guarded.cuh", tmp_path)
    header = tmp_path / "own.cuh"
    header.write_text("int of_its_own = 1;\n")
    contract = replace(GUARDED, directory=tmp_path, nvcc_flags=flags)
    first = key_of(contract)
    assert key_of(contract) == first
    header.write_text("int of_its_own = 2;\n")
    assert key_of(contract) != first


def test_a_header_that_appears_is_part_of_the_key(tmp_path: Path, key_of: Callable[[Contract], str]) -> None:
    """Fault: only the files that were read are looked at, not those that were looked for."""
    kernel = (GUARDED.directory / "guarded.cu").read_text()
    asks = '#if __has_include("fast.cuh")\nint fast = 1;\n#endif\n'
    (tmp_path / "guarded.cu").write_text(asks + kernel)
    shutil.copy(GUARDED.directory / "guarded.cuh", tmp_path)
    contract = replace(GUARDED, directory=tmp_path)
    first = key_of(contract)
    (tmp_path / "fast.cuh").touch()
    assert key_of(contract) != first


def test_the_contents_of_an_options_file_are_part_of_the_key(
    tmp_path: Path, key_of: Callable[[Contract], str]
) -> None:
    """Fault: options that a file holds are changed, and the old binary is judged."""
    options = tmp_path / "options"
    options.write_text("-maxrregcount=32")
    contract = replace(GUARDED, nvcc_flags=(f"-optf={options}",))
    first = key_of(contract)
    options.write_text("-maxrregcount=64")
    assert key_of(contract) != first


def test_another_file_of_the_same_name_is_not_included(tmp_path: Path) -> None:
    """Fault: the production file is looked for on the include path, where another one of its name comes
    first. The twin: a header of its own on that path is found."""
    (tmp_path / "own").mkdir()
    shutil.copy(GUARDED.directory / "guarded.cu", tmp_path)
    shutil.copy(GUARDED.directory / "guarded.cuh", tmp_path / "own")
    for name in ("guarded.cu", "verify_entry.hpp"):
        (tmp_path / "own" / name).write_text('#error "not this one"\n')
    built = build_harness(replace(GUARDED, directory=tmp_path, nvcc_flags=("-Iown",)), "sm_90")
    assert built.files == (tmp_path / "guarded.cu", tmp_path / "own" / "guarded.cuh")


def test_a_file_that_changes_while_it_is_compiled_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: what was compiled after an edit is kept for the text before it."""
    for name in ("guarded.cu", "guarded.cuh"):
        shutil.copy(GUARDED.directory / name, tmp_path)
    header = tmp_path / "guarded.cuh"
    edited = header.read_text() + "int edited;"
    monkeypatch.setattr("verify.harness.build._compile", lambda *_: header.write_text(edited))
    with pytest.raises(BuildError, match="changed during the compile"):
        build_harness(replace(GUARDED, directory=tmp_path), "sm_90", lambda _: None)


UNPLAIN = "a b, $(touch touched) `touch touched`; 'c' & \"d\""


def test_names_never_reach_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: nvcc's shell runs what stands in the name of a folder: the kernel's, its headers', the cache's,
    or that of temporary files."""
    place = tmp_path / UNPLAIN
    (place / "own").mkdir(parents=True)
    (place / "temporary").mkdir()
    (place / "cache").mkdir(mode=0o700)
    shutil.copy(GUARDED.directory / "guarded.cu", place / "$HOME guarded.cu")
    shutil.copy(GUARDED.directory / "guarded.cuh", place / "own")
    monkeypatch.setenv("VERIFY_CACHE", str(place / "cache"))
    monkeypatch.setenv("TMPDIR", str(place / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", str(place / "temporary"))
    monkeypatch.chdir(place)
    contract = replace(GUARDED, directory=place, source="$HOME guarded.cu", nvcc_flags=("-Iown",))
    built = build_harness(contract, "sm_90", lambda _: None, machine_code=False)
    assert built.binary.is_file() and len(built.files) == 2
    assert compile_program_named(place).is_file()
    assert not list(tmp_path.rglob("touched"))


def compile_program_named(place: Path) -> Path:
    source = place / "$(touch touched) program.cu"
    source.write_text("int main() { return 0; }\n")
    return compile_program(source, "sm_90")


def test_the_first_compile_that_fails_ends_the_others(tmp_path: Path) -> None:
    """Fault: the rest of a build continues for minutes after one file did not compile, and hides the
    error."""
    compilers, ended = Compilers(), []

    def compile_long() -> None:
        with pytest.raises(StoppedError):
            compilers.run(["sh", "-c", "echo begun > begun; sleep 60 & wait"], tmp_path, dict(os.environ))
        ended.append("long")

    beside = threading.Thread(target=compile_long)
    beside.start()
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    assert compilers.run(["sh", "-c", "echo wrong >&2; exit 1"], tmp_path, dict(os.environ)) == (1, "wrong")
    beside.join(30)
    assert ended == ["long"]
    with pytest.raises(StoppedError):
        compilers.run(["true"], tmp_path, dict(os.environ))


def test_a_compile_error_has_the_compilers_output(tmp_path: Path) -> None:
    """Fault: a failure without file and line, and a failed build that is kept."""
    (tmp_path / "guarded.cu").write_text("#include <cuda_runtime.h>\nint broken(;\n")
    for _ in range(2):
        with pytest.raises(BuildError, match=r"guarded\.cu\(2\): error") as caught:
            build_all([replace(GUARDED, directory=tmp_path)], "sm_90")
        assert "does not build" in str(caught.value)


@pytest.mark.parametrize("flag", ["-o/x;rm", "--opt=$(id)", "x", "-D'a'", "-I"])
def test_a_flag_that_is_more_than_an_option_is_refused(flag: str) -> None:
    with pytest.raises(BuildError, match="nvcc_flags"):
        compile_command(replace(GUARDED, nvcc_flags=(flag,)), ["sm_90"], find_toolchain())


def test_architectures_give_code_and_ptx_each() -> None:
    """Fault: an architecture that only another one's PTX would serve."""
    assert architecture_flags(["sm_80", "sm_90a"])[1::2] == (
        "arch=compute_80,code=sm_80",
        "arch=compute_80,code=compute_80",
        "arch=compute_90a,code=sm_90a",
        "arch=compute_90a,code=compute_90a",
    )
    with pytest.raises(BuildError, match="sm90"):
        architecture_flags(["sm90"])
