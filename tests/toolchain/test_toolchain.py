"""Finding the toolchain: wheels before the system, and one line for each thing that is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from verify.toolchain import toolchain as module
from verify.toolchain.toolchain import Toolchain, ToolchainError, find_toolchain


@pytest.fixture(autouse=True)
def forget() -> None:
    module._find_cached.cache_clear()


def made_root(folder: Path, nvcc_says: str, *, wheel: bool) -> Path:
    """A toolkit with the files that are looked for, and an nvcc that says its version."""
    (folder / "bin").mkdir(parents=True)
    nvcc = folder / "bin" / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho '{nvcc_says}'\n")
    nvcc.chmod(0o755)
    for header in ("cuda_runtime.h", "crt/host_config.h", "cccl/nv/target", "nvtx3/nvToolsExtMem.h"):
        file = folder / "include" / header
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    library = folder / ("lib" if wheel else "lib64")
    library.mkdir()
    (library / "libcudart.so.13").touch()
    if not wheel:
        (library / "libcudart.so").touch()
    return folder


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, list[Path]]:
    """Where wheels and the system's toolkits are looked for; empty at first."""
    found: dict[str, list[Path]] = {"pip": [], "system": []}
    monkeypatch.setattr(module, "wheel_roots", lambda: found["pip"])
    monkeypatch.setattr(module, "_system_roots", lambda: iter(found["system"]))
    monkeypatch.delenv("VERIFY_TOOLCHAIN", raising=False)
    monkeypatch.delenv("VERIFY_SANITIZER", raising=False)
    # The compiler must be found, nothing else.
    monkeypatch.setenv("PATH", str(tmp_path))
    return found


RELEASE = "Cuda compilation tools, release {}, V{}.37"


def test_wheels_come_before_the_system(places: dict[str, list[Path]], tmp_path: Path) -> None:
    """Fault: a system compiler that is taken although pinned wheels are there."""
    places["system"] = [made_root(tmp_path / "cuda", RELEASE.format("13.0", "13.0"), wheel=False)]
    assert find_toolchain().origin == "system"
    module._find_cached.cache_clear()
    places["pip"] = [made_root(tmp_path / "cu13", RELEASE.format("13.5", "13.5"), wheel=True)]
    tools = find_toolchain()
    assert (tools.origin, tools.release) == ("pip", (13, 5))
    assert find_toolchain("system").release == (13, 0)


def test_wheels_are_linked_by_the_library_s_full_name(places: dict[str, list[Path]], tmp_path: Path) -> None:
    """Fault: -cudart shared over wheels, which have no libcudart.so."""
    places["pip"] = [made_root(tmp_path / "cu13", RELEASE.format("13.5", "13.5"), wheel=True)]
    places["system"] = [made_root(tmp_path / "cuda", RELEASE.format("13.0", "13.0"), wheel=False)]
    assert find_toolchain("pip").link_flags()[-1] == "-l:libcudart.so.13"
    assert find_toolchain("system").link_flags()[:2] == ("-cudart", "shared")


def test_each_missing_part_is_named_with_its_cure(places: dict[str, list[Path]], tmp_path: Path) -> None:
    """Fault: a build that fails in the compiler's words where a package is missing."""
    root = made_root(tmp_path / "cu13", RELEASE.format("13.5", "13.5"), wheel=True)
    for absent in ("include/cccl/nv/target", "include/nvtx3/nvToolsExtMem.h", "lib/libcudart.so.13"):
        (root / absent).unlink()
    places["pip"] = [root]
    tools = find_toolchain("pip")
    assert not tools.can_build
    assert "nvidia-cuda-cccl" in tools.missing["headers"]
    assert "nvidia-nvtx" in tools.missing["nvtx"]
    assert "nvidia-cuda-runtime" in tools.missing["libcudart"]
    assert "VERIFY_SANITIZER" in tools.missing["compute-sanitizer"]
    assert all("\n" not in reason for reason in tools.missing.values())
    with pytest.raises(ToolchainError, match="nvidia-cuda-cccl"):
        tools.require_build()


def test_a_machine_without_any_tool_names_all(places: dict[str, list[Path]]) -> None:
    tools = find_toolchain()
    assert "nvidia-cuda-nvcc" in tools.missing["nvcc"]
    assert not tools.can_build


def test_an_older_compiler_is_refused(places: dict[str, list[Path]], tmp_path: Path) -> None:
    """Fault: release 12, whose runtime has another name and other entry points."""
    places["system"] = [made_root(tmp_path / "cuda", RELEASE.format("12.8", "12.8"), wheel=False)]
    assert "13.0 or later" in find_toolchain().missing["nvcc"]


def test_an_unpacked_sanitizer_without_executable_bits_is_made_to_run(
    places: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Fault: a wheel unpacked by hand, which cannot be started."""
    folder = tmp_path / "unpacked" / "nvidia" / "cu13" / "compute-sanitizer"
    folder.mkdir(parents=True)
    program, launcher = folder / "compute-sanitizer", folder / "TreeLauncherSubreaper"
    program.write_text("#!/bin/sh\necho 'Version 2026.4.0.0 (build 1)'\n")
    launcher.touch()
    monkeypatch.setenv("VERIFY_SANITIZER", str(tmp_path / "unpacked"))
    tools = find_toolchain("pip")
    assert (tools.sanitizer, tools.sanitizer_version) == (program, "2026.4.0.0")
    assert os.access(launcher, os.X_OK)


def test_a_wrong_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIFY_TOOLCHAIN", "conda")
    with pytest.raises(ValueError, match=r"VERIFY_TOOLCHAIN: .* 'conda'"):
        find_toolchain()


def test_this_machine_can_build() -> None:
    """Fault: a search that does not find the real thing."""
    tools: Toolchain = find_toolchain()
    assert tools.can_build, tools.missing
    assert tools.release >= (13, 0)
