"""The gate as a whole: a doubt about the oracle must reach the verdict."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.check.twice_kernel import CONTRACT, subject
from verify import gate
from verify.discovery import find_contracts
from verify.finding import Outcome, Verdict, overall
from verify.report.ladder import TOKENS
from verify.tokens.rung import TokenRung, TopRung


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
        target,
        gate.Selection((CONTRACT,)),
        ("compare",),
        "",
        Path("s"),
        lambda _: None,
        TopRung(False, "", lambda _: None),
    )
    assert overall(report.outcomes) is verdict


@pytest.mark.parametrize(
    ("rung", "verdict"),
    [
        (TokenRung("cpu", Verdict.INCONCLUSIVE, "an operation did not run"), Verdict.INCONCLUSIVE),
        (TokenRung("cpu", Verdict.CLEAN), Verdict.CLEAN),
    ],
)
def test_token_parity_that_was_asked_for_reaches_the_verdict(
    monkeypatch: pytest.MonkeyPatch, rung: TokenRung, verdict: Verdict
) -> None:
    """A top rung that is only printed would leave exit code 0 on kernels that choose other tokens."""
    (contract,) = find_contracts(["fp8_matvec"])
    clean = Outcome.judge("compare", "fp8_matvec", "small", [])
    monkeypatch.setattr(gate, "prepare", lambda *_: dataclasses.replace(subject(), cases={}))
    monkeypatch.setattr(gate, "run_checks", lambda *_: [clean])
    top = TopRung(True, "", lambda _: None, {"sm_90": rung})
    target = gate.Target(contract, subject().device, "sm_90", 132)
    selection = gate.Selection((contract,), ladder=True)
    report = gate._run_target(target, selection, ("compare",), "", Path("s"), lambda _: None, top)
    assert overall(report.outcomes) is verdict
    assert report.rungs[TOKENS] == rung.text


def test_token_parity_is_of_the_suites_own_kernels() -> None:
    """A user's kernel that has the name of one of ours must not be passed by what ours did."""
    (contract,) = find_contracts(["fp8_matvec"])
    users = dataclasses.replace(contract, directory=Path("elsewhere"))
    top = TopRung(True, "", lambda _: None, {"sm_90": TokenRung("cpu", Verdict.CLEAN)})
    assert top.of(users, subject().device, "sm_90") is None
    assert top.text(users, None).startswith("not run (its decoder is made of")
