"""docs/contracts.md names what the code has."""

from __future__ import annotations

import re
from pathlib import Path

from verify.contract.formats import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "contracts.md").read_text()


def test_every_element_type_is_named() -> None:
    """Fault: a user looks for the spelling of a type in the source, or finds one that there is not."""
    (listed,) = re.findall(r"Element types are (.*?), two FP4", " ".join(PAGE.split()))
    assert set(re.findall(r"`(\w+)`", listed)) == set(FORMATS)
