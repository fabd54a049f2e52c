"""parity: agreement within both bounds is clean, a disagreement is named, and an oracle that cannot run is
not run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.check.scripted import CONTRACT, right_output, subject
from verify.check.parity import check_parity
from verify.contract.compared import KernelOracle
from verify.contract.model import Case, Contract
from verify.finding.finding import Verdict
from verify.oracle.tracked import Tracked
from verify.wire.output import RunOutput
from verify.wire.run import Run


def with_oracle(oracle: Callable[[Case], dict[str, Tracked]] | KernelOracle) -> Contract:
    return dataclasses.replace(CONTRACT, parity={"other": oracle})


def twice(case: Case, off: float = 0.0, bound: float = 0.0) -> dict[str, Tracked]:
    """The right answer of another implementation, ``off`` too large, which it says it may be by ``bound``."""
    value = 2 * case.f64("x") + off
    return {"y": Tracked(value, np.full_like(value, bound))}


def test_two_correct_implementations_are_clean(tmp_path: Path) -> None:
    """Fault: a check that reports agreement."""
    for outcome in check_parity(subject(tmp_path, contract=with_oracle(twice))):
        assert outcome.verdict is Verdict.CLEAN
        assert outcome.measures["elements"] == 16
        assert outcome.measures["elements other"] == 16


def test_a_difference_beyond_both_bounds_is_named(tmp_path: Path) -> None:
    """Fault: a difference that disappears in one of the bounds, or is reported without its oracle."""
    near = with_oracle(lambda case: twice(case, off=0.5, bound=0.5))
    assert {o.verdict for o in check_parity(subject(tmp_path, contract=near))} == {Verdict.CLEAN}
    far = with_oracle(lambda case: twice(case, off=0.5, bound=0.4))
    outcome = check_parity(subject(tmp_path, contract=far))[0]
    assert outcome.verdict is Verdict.FINDINGS
    assert outcome.findings[0].kind == "disagrees with other"
    assert "float64 reference" in dict(outcome.findings[0].details)


def test_a_stale_kernel_is_reported(tmp_path: Path) -> None:
    """Fault: a kernel that leaves zeros where two implementations are compared."""

    def zeros(run: Run) -> RunOutput:
        return dataclasses.replace(right_output(run), outputs={"y": np.zeros((2, 4), np.uint32)})

    one = with_oracle(lambda case: {"y": Tracked(2 * case.f64("x") + 1, np.zeros((2, 4)))})
    assert check_parity(subject(tmp_path, contract=one, leaves=zeros))[0].verdict is Verdict.FINDINGS


def test_without_an_oracle_it_is_not_run(tmp_path: Path) -> None:
    """Fault: a rung that was not run counts as passed."""
    outcome = check_parity(subject(tmp_path))[0]
    assert outcome.verdict is Verdict.NOT_RUN
    assert "parity" in outcome.reason


def test_a_missing_package_is_not_run_and_says_what_to_install(tmp_path: Path) -> None:
    """Fault: a missing torch that passes, or ends in a traceback."""

    def needs_torch(case: Case) -> dict[str, Tracked]:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    outcome = check_parity(subject(tmp_path, contract=with_oracle(needs_torch)))[0]
    assert outcome.verdict is Verdict.NOT_RUN
    assert "torch" in outcome.reason
    assert "parity" in outcome.reason


def test_one_missing_oracle_does_not_hide_anothers_result(tmp_path: Path) -> None:
    """Fault: a missing torch keeps the library pipeline from being run, or counts as agreement."""

    def needs_torch(case: Case) -> dict[str, Tracked]:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    both = dataclasses.replace(CONTRACT, parity={"torch": needs_torch, "other": twice})
    outcome = check_parity(subject(tmp_path, contract=both))[0]
    assert (outcome.verdict, outcome.measures["elements other"]) == (Verdict.NOT_RUN, 16)
    apart = {"torch": needs_torch, "other": lambda case: twice(case, off=1.0)}
    outcome = check_parity(subject(tmp_path, contract=dataclasses.replace(CONTRACT, parity=apart)))[0]
    assert (outcome.verdict, outcome.findings[0].kind) == (Verdict.FINDINGS, "disagrees with other")


def test_an_oracle_of_another_device_is_not_run(tmp_path: Path) -> None:
    """Fault: a library's kernel counts as asked on a device that cannot run its machine code."""
    on_gpu = subject(tmp_path, contract=with_oracle(KernelOracle("decode_pipeline")))
    on_cpu = dataclasses.replace(on_gpu, device=dataclasses.replace(on_gpu.device, name="cpu"))
    outcome = check_parity(on_cpu)[0]
    assert outcome.verdict is Verdict.NOT_RUN
    assert "cpu" in outcome.reason


def test_an_oracle_that_answers_nothing_is_inconclusive(tmp_path: Path) -> None:
    """Fault: a comparison of no element that looks like agreement."""
    outcome = check_parity(subject(tmp_path, contract=with_oracle(lambda case: {})))[0]
    assert outcome.verdict is Verdict.INCONCLUSIVE
