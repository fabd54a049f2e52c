"""The table of PTX: ptxas accepts what it lists, and docs/reference/ptx.md is what the decoder does."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from verify.toolchain.toolchain import find_toolchain

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("isa_table", ROOT / "machine" / "table" / "table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def accepted(text: str, folder: Path) -> str:
    """What nvcc says against a module; empty where it compiles."""
    nvcc = find_toolchain().nvcc
    assert nvcc is not None
    (folder / "table.ptx").write_text(text)
    command = [str(nvcc), "-arch=sm_90a", "-cubin", "-Xptxas=-O0", "-o", "table.cubin", "table.ptx"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return "" if done.returncode == 0 else done.stderr


def test_the_compiler_accepts_every_form_of_the_table(table: ModuleType, tmp_path: Path) -> None:
    """Fault: a spelling that no compiler emits, so that the test of the decoder proves nothing."""
    statements = [s for row in table.rows() if row.family != table.LATER for s in row.statements()]
    assert accepted(table.module(statements), tmp_path) == ""


def test_the_compiler_refuses_what_is_listed_as_later(table: ModuleType, tmp_path: Path) -> None:
    """Fault: an instruction that sm_90 has, put aside as one of later architectures."""
    later = [row for row in table.rows() if row.family == table.LATER]
    assert later
    for row in later:
        assert accepted(table.module([row.statements()[0]]), tmp_path) != "", row.pattern


def test_the_page_says_what_the_decoder_does(table: ModuleType) -> None:
    """Fault: the table lacks a form or has one too many (python machine/table/table.py prints it again)."""
    assert (ROOT / "docs" / "reference" / "ptx.md").read_text() == "\n".join(table.page()) + "\n"
