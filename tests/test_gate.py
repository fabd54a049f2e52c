"""The gate as a whole: a doubt about the oracle must reach the verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.twice_kernel import CONTRACT, subject
from verify import gate
from verify.finding import Outcome, Verdict, overall


@pytest.mark.parametrize(
    ("rung", "verdict"), [("failed: exact 99", Verdict.INCONCLUSIVE), ("passed", Verdict.CLEAN)]
)
def test_oracle_that_mpmath_contradicts_is_not_clean(
    monkeypatch: pytest.MonkeyPatch, rung: str, verdict: Verdict
) -> None:
    """A failed rung that is only printed would leave exit code 0 on an oracle that is wrong."""
    ready = subject()
    clean = Outcome.judge("compare", "twice", "small", [])
    monkeypatch.setattr(gate, "prepare", lambda *_: ready)
    monkeypatch.setattr(gate, "run_checks", lambda *_: [clean])
    monkeypatch.setattr(gate, "rungs", lambda *_: {"rung 1 mpmath": rung})
    monkeypatch.setattr(gate, "source_file", lambda _: Path("twice.cu"))
    target = gate.Target(CONTRACT, ready.device, "sm_90", 132)
    report = gate._run_target(
        target, gate.Selection((CONTRACT,)), ("compare",), "", Path("s"), lambda _: None
    )
    assert overall(report.outcomes) is verdict
