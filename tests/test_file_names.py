"""pytest imports test files by their names alone, so two of one name cannot be collected together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def test_every_test_file_has_a_name_of_its_own() -> None:
    """Fault: the whole suite ends at collection, although each file runs alone."""
    names = Counter(file.name for file in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
