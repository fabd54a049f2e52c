"""``verify doctor``: a part that is missing must say what to do about it."""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path

import pytest

from verify.cli.doctor import parity_parts


def test_a_missing_oracle_of_parity_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Fault: a rung of the ladder that cannot run here is not explained."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    torch, cublas = parity_parts()
    assert not torch.ok
    assert "pip install torch" in torch.text
    assert not cublas.ok
    assert "pip install nvidia-cublas" in cublas.text


def test_a_cublas_installed_as_a_package_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fault: a library that the parity check would load, called missing."""
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcublasLt.so.13").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = importlib.machinery.ModuleSpec("torch", None, origin="/torch/__init__.py")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: found)
    torch, cublas = parity_parts()
    assert (torch.ok, torch.text) == (True, "/torch/__init__.py")
    assert (cublas.ok, cublas.text) == (True, str(folder / "libcublasLt.so.13"))
