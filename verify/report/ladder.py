"""The oracle ladder as it stands for one kernel: which rung was passed, and which was not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verify.contract import Contract
from verify.finding import Outcome, Verdict, overall


def rungs(contract: Contract, outcomes: Sequence[Outcome]) -> Mapping[str, str]:
    """Rung -> what was shown, from the bottom of the ladder up. A rung without a check says ``not run``."""
    return {
        "rung 1 mpmath": "pytest tests/oracle samples the reference and the bound in arbitrary precision",
        "rung 2 float64 reference": _by_check(outcomes, "compare"),
        "rung 3 op parity": _by_check(outcomes, "parity", "verify run --check parity"),
        "rung 4 token parity": "not run (verify tokens)",
    }


def _by_check(outcomes: Sequence[Outcome], check: str, how: str = "") -> str:
    relevant = [o for o in outcomes if o.check == check]
    if not relevant:
        return f"not run ({how})" if how else "not run"
    verdict = overall(relevant)
    if verdict is Verdict.CLEAN:
        elements = int(sum(o.measures.get("elements", 0) for o in relevant))
        return f"passed, {elements:,} elements within their bounds" if elements else "passed"
    return str(verdict)
