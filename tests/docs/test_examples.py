"""What the manual shows in Python runs, and its whole contracts verify as they stand."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import verify
from verify.contract.discovery import find_contracts, fixture_file
from verify.fixture.schema import load_fixtures
from verify.oracle import tracked

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_python_of_the_manual_runs(block: str) -> None:
    """Fault: a snippet names a class, a field or a function that is not there."""
    names = {name: getattr(verify, name) for name in verify.__all__}
    exec(block, {**names, "np": np, "t": tracked, "Path": Path})


@pytest.mark.parametrize(
    ("page", "source", "count"),
    [
        ("tutorial/first_kernel.md", ROOT / "examples" / "row_softmax" / "row_softmax.cu", 2),
        ("how_to/torch_extension.md", None, 1),
    ],
)
def test_contract_and_fixtures_of_a_page_fit(
    tmp_path: Path, page: str, source: Path | None, count: int
) -> None:
    """Fault: a reader copies a contract and fixtures that the suite refuses."""
    (contract,) = (block for block in blocks(page, "python") if "CONTRACT = " in block)
    (fixtures,) = blocks(page, "toml")
    (name,) = re.findall(r'^    name="(\w+)"', contract, re.MULTILINE)
    text = source.read_text() if source else blocks(page, "cpp")[0]
    (tmp_path / f"{name}.cu").write_text(text)
    (tmp_path / f"{name}_contract.py").write_text(contract)
    (tmp_path / f"{name}.toml").write_text(fixtures)
    (found,) = find_contracts([str(tmp_path)])
    assert len(load_fixtures(fixture_file(found), found)) == count


def test_the_contract_of_the_tutorial_is_that_of_the_example() -> None:
    """Fault: the tutorial teaches what the example, which the tests run, no longer does."""
    example = (ROOT / "examples" / "row_softmax" / "row_softmax_contract.py").read_text()
    (lesson,) = blocks("tutorial/first_kernel.md", "python")
    code = re.sub(r"\s|,(?=\s*\))", "", lesson)
    assert code in re.sub(r'\s|,(?=\s*\))|^""".*?"""|#fmt:skip', "", example.replace("# fmt: skip", ""))
    shown = tomllib.loads(blocks("tutorial/first_kernel.md", "toml")[0])["fixture"]
    whole = tomllib.loads((ROOT / "examples" / "row_softmax" / "row_softmax.toml").read_text())["fixture"]
    assert all(fixture in whole for fixture in shown)
