"""Do the field's rules say what they say in the field?"""

from __future__ import annotations

import numpy as np
import pytest

from verify.mutation.field_rules import RULES

REFERENCE = np.linspace(-2.0, 2.0, 1001)


@pytest.mark.parametrize(
    ("seen", "passing"),
    [
        (REFERENCE, set(RULES)),
        (REFERENCE * np.nan, set()),
        (REFERENCE + 0.017, {"NMSE 5e-4", "allclose 2e-2", "cosine 0.999"}),
        (REFERENCE * 1.5, {"cosine 0.999"}),
        (REFERENCE * 1.0035, {"NMSE 5e-4", "allclose 1e-2", "allclose 2e-2", "twice bf16", "cosine 0.999"}),
        (np.where(np.arange(1001) == 400, 0.0, REFERENCE), {"NMSE 5e-4", "cosine 0.999"}),
    ],
)  # fmt: skip
def test_rules(seen: np.ndarray, passing: set[str]) -> None:
    """Fault: NaN passes a rule, or a rule is stricter or laxer than the one that people use."""
    with np.errstate(all="ignore"):
        assert {name for name, rule in RULES.items() if rule(seen, REFERENCE)} == passing
