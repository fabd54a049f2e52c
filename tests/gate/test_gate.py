"""The gate as a whole: a doubt about the oracle must reach the verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.check.twice_kernel import CONTRACT, subject
from verify.contract.discovery import find_contracts
from verify.contract.model import Case
from verify.finding.finding import Outcome, Verdict, overall
from verify.fixture.resolve import ResolvedFixture
from verify.gate import gate, prepare
from verify.gate.prepare import Prepared, Target
from verify.gate.selection import Selection
from verify.harness.build import Build
from verify.oracle.expectation import expect
from verify.report.ladder import TOKENS
from verify.tokens.rung import TokenRung, TopRung
from verify.toolchain.toolchain import find_toolchain

BUILD = Build(CONTRACT, Path("h"), Path("h.cu"), ("sm_90",), (), find_toolchain(), True, 0.0)


def ready(cases: Mapping[str, Mapping[str, Case]] | None = None) -> Prepared:
    made = subject()
    return Prepared(CONTRACT, BUILD, made.fixtures, made.cases if cases is None else cases)


@pytest.mark.parametrize(
    ("rung", "verdict"), [("failed: exact 99", Verdict.INCONCLUSIVE), ("passed", Verdict.CLEAN)]
)
def test_oracle_that_mpmath_contradicts_is_not_clean(
    monkeypatch: pytest.MonkeyPatch, rung: str, verdict: Verdict
) -> None:
    """Fault: a failed rung is only printed, and the exit code is 0 although the oracle is wrong."""
    clean = Outcome.judge("compare", "twice", "small", [])
    monkeypatch.setattr(gate, "prepare", lambda *_, **__: ready())
    monkeypatch.setattr(gate, "run_checks", lambda *_: [clean])
    monkeypatch.setattr(gate, "rungs", lambda *_: {"rung 1 mpmath": rung})
    monkeypatch.setattr(gate, "source_file", lambda _: Path("twice.cu"))
    target = Target(CONTRACT, subject().device, "sm_90", 132, ("sm_90",))
    report = gate._run_target(
        target,
        Selection((CONTRACT,)),
        ("compare",),
        "",
        Path("s"),
        lambda _: None,
        TopRung(False, "", lambda _: None),
        {},
    )
    assert overall(report.outcomes) is verdict


@pytest.mark.parametrize(
    ("rung", "verdict"),
    [
        (TokenRung("cpu", Verdict.INCONCLUSIVE, "an operation did not run"), Verdict.INCONCLUSIVE),
        (TokenRung("cpu", Verdict.CLEAN), Verdict.CLEAN),
    ],
)
def test_requested_token_parity_affects_the_verdict(
    monkeypatch: pytest.MonkeyPatch, rung: TokenRung, verdict: Verdict
) -> None:
    """Fault: the top rung is only printed, and the exit code is 0 although kernels choose other tokens."""
    # The rows of another kernel stand in for its fixtures, so nothing is promised of what they run.
    contract = dataclasses.replace(find_contracts(["fp8_matvec"])[0], instantiations={})
    clean = Outcome.judge("compare", "fp8_matvec", "small", [])
    monkeypatch.setattr(gate, "prepare", lambda *_, **__: ready({}))
    monkeypatch.setattr(gate, "run_checks", lambda *_: [clean])
    top = TopRung(True, "", lambda _: None, {"sm_90": rung})
    target = Target(contract, subject().device, "sm_90", 132, ("sm_90",))
    selection = Selection((contract,), ladder=True)
    report = gate._run_target(target, selection, ("compare",), "", Path("s"), lambda _: None, top, {})
    assert overall(report.outcomes) is verdict
    assert report.rungs[TOKENS] == rung.text


def test_architectures_share_what_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: bounds of one architecture's plan judge the other's, or each pays for the same ones again."""
    first = ready()
    before = dataclasses.replace(first, expected={c.id: expect(c) for c in first.cases["small"].values()})
    other = ResolvedFixture(first.fixtures[0].fixture, {"rows": 3, "columns": 5}, {"splits": 2})
    monkeypatch.setattr(prepare, "load_fixtures", lambda *_: [first.fixtures[0].fixture])
    monkeypatch.setattr(prepare, "fixture_file", lambda _: Path("twice.toml"))
    monkeypatch.setattr(prepare, "build_harness", lambda *_, **__: BUILD)
    for resolved, shared in ((first.fixtures[0], True), (other, False)):
        monkeypatch.setattr(prepare, "resolve_fixtures", lambda *_, it=resolved: (it,))
        again = prepare.prepare(CONTRACT, list, "sm_80", 108, lambda _: None, before=before)
        assert (again.cases["small"] is before.cases["small"]) is shared
        assert again.expected == (before.expected if shared else {})


def test_token_parity_is_of_the_suites_own_kernels() -> None:
    """Fault: a user's kernel with the name of one of ours passes by our kernel's result."""
    (contract,) = find_contracts(["fp8_matvec"])
    users = dataclasses.replace(contract, directory=Path("elsewhere"))
    top = TopRung(True, "", lambda _: None, {"sm_90": TokenRung("cpu", Verdict.CLEAN)})
    assert top.of(users, subject().device, "sm_90") is None
    assert top.text(users, None).startswith("not run (its decoder uses")
