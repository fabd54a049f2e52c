"""determinism: what differs between repeats, or between a row alone and in its batch, is reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from tests.check.scripted import CONTRACT, ScriptedSubject, build, right_output, subject
from verify.check.determinism import MOST_ROWS, alone_case, check_determinism, row_symbols
from verify.contract.model import Contract
from verify.device.interface import Execution, Job, RunResult, RunStatus
from verify.finding.finding import Verdict
from verify.harness.plan import PlanError
from verify.oracle import tracked as t
from verify.wire.output import Difference, Differing, RunOutput
from verify.wire.run import Run


def plans(asked: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, int]]:
    return [{"auto": 1} for _ in asked]


def test_a_right_kernel_is_clean_and_rows_ran_alone(tmp_path: Path) -> None:
    """Fault: clean without a row ever having run alone."""
    made = subject(tmp_path, plans=plans)
    outcomes = check_determinism(made)
    assert {o.verdict for o in outcomes} == {Verdict.CLEAN}
    assert outcomes[0].measures["rows alone"] == 8  # two profiles, two rows, pinned and free
    modes = [run.mode for run in made.asked]
    assert modes.count("repeat") == 4 and modes.count("once") == 16


def test_a_repeat_that_differs_is_a_finding(tmp_path: Path) -> None:
    """Fault: a race that appears in one repeat of twenty is not reported."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.id == "two.normal.repeat":
            return replace(output, differences=(Difference(3, "y", 8, 4),), difference_count=1)
        return output

    outcomes = check_determinism(subject(tmp_path, leaves=leaves, plans=plans))
    assert [o.verdict for o in outcomes] == [Verdict.CLEAN, Verdict.FINDINGS]
    (finding,) = outcomes[1].findings
    assert finding.kind == "not repeatable"
    assert "call 4 of 20 differs from the first: 4 bytes of y at byte 8" in finding.seen


def test_a_row_with_other_bits_alone_is_a_finding(tmp_path: Path) -> None:
    """Fault: an output that depends on the other rows of the batch, by one bit."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.id == "one.normal.row1":
            moved = output.outputs["y"].copy()
            moved[0, 2] += 1
            return replace(output, outputs={"y": moved})
        return output

    outcomes = check_determinism(subject(tmp_path, leaves=leaves, plans=plans))
    (finding,) = outcomes[0].findings
    assert finding.kind == "row depends on its batch"
    assert "row 1 of y: 1 of 4 elements" in finding.seen


def test_a_row_left_to_the_launcher_must_stay_in_its_bound(tmp_path: Path) -> None:
    """Fault: a launcher whose own choice for one row is wrong, while the pinned one is right."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.id.endswith("row0-free"):
            return replace(output, outputs={"y": np.full_like(output.outputs["y"], 0x40400000)})
        return output

    outcomes = check_determinism(subject(tmp_path, leaves=leaves, plans=plans))
    assert {o.verdict for o in outcomes} == {Verdict.FINDINGS}
    assert {f.kind for f in outcomes[0].findings} == {"outside the bound"}


def test_a_plan_that_refuses_a_single_row_is_inconclusive(tmp_path: Path) -> None:
    """Fault: the row test silently does not happen."""

    def refuses(asked: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, int]]:
        raise PlanError("plan answers cudaErrorInvalidValue")

    outcomes = check_determinism(subject(tmp_path, plans=refuses))
    assert {o.verdict for o in outcomes} == {Verdict.INCONCLUSIVE}
    assert "cudaErrorInvalidValue" in outcomes[0].reason


def test_a_row_is_cut_from_arrays_and_lists(tmp_path: Path) -> None:
    """Fault: the row alone gets another row's data, or the whole list of lengths."""
    case = build("one", rows=3)
    symbols = row_symbols(case, 2, {"chunks": 5})
    assert symbols == {"rows": 1, "chunks": 5, "factor": (4,)}
    alone = alone_case(case, 2, symbols, {"auto": 5})
    assert alone.arrays["x"].tolist() == case.arrays["x"][2:3].tolist()
    assert alone.arrays["factors"].shape == (1,)


def test_many_rows_are_sampled_with_both_ends(tmp_path: Path) -> None:
    """Fault: a batch of a thousand rows makes a thousand runs, or the last row never runs alone."""
    made = subject(tmp_path, fixtures=("one",), rows=1000, plans=plans)
    check_determinism(made)
    rows = {run.id.split(".row")[1].removesuffix("-free") for run in made.asked if ".row" in run.id}
    assert len(rows) == MOST_ROWS
    assert {"0", "999"} <= rows


def test_a_batch_of_one_has_no_row_to_run_alone(tmp_path: Path) -> None:
    """Fault: a row compared with itself counts as a test."""
    outcomes = check_determinism(subject(tmp_path, rows=1, plans=plans))
    assert outcomes[0].measures["rows alone"] == 0


def on_cpu(
    folder: Path, script: Callable[[Job], Execution], contract: Contract = CONTRACT
) -> ScriptedSubject:
    made = subject(folder, script, fixtures=("one",), contract=contract, plans=plans)
    made.device.name = "cpu"
    return made


def written(job: Job, change: int = 0) -> Execution:
    """Every run done, with the right output in its file, one bit of it changed when asked."""
    results = {}
    job.out.mkdir(parents=True)
    for run in job.runs:
        profile = run.split(".")[1]
        y = right_output(Run(run, build("one", profile))).outputs["y"].copy()
        y.reshape(-1)[-1] ^= change
        data = y.tobytes()
        head = f"verify-output 1\nrun {run}\nmode once\nreturned cudaSuccess\nkernels 1\nheld 0\nshared 0\n"
        head += f"intrusions 0\ndifferences 0\ndata y promised {len(data)}\npayload\n"
        path = job.out / f"{run}.out"
        path.write_bytes(head.encode() + data)
        results[run] = RunResult(run, RunStatus.DONE, path, 1)
    return Execution(job, results)


def test_the_cpu_device_runs_other_schedules(tmp_path: Path) -> None:
    """Fault: twenty times the same schedule counts as determinism."""
    made = on_cpu(tmp_path, written)
    (outcome,) = check_determinism(made)
    assert outcome.verdict is Verdict.CLEAN
    assert outcome.measures["schedules"] == 4
    assert [job.options for job in made.device.jobs] == [{"seed": "1"}, {"seed": "2"}, {"seed": "3"}]
    assert "repeat" not in {run.mode for run in made.asked}


def test_other_bits_under_another_schedule_are_a_finding(tmp_path: Path) -> None:
    """Fault: an order of additions that depends on which block comes first."""
    made = on_cpu(tmp_path, lambda job: written(job, change=int(job.options["seed"] == "2")))
    (outcome,) = check_determinism(made)
    assert {f.kind for f in outcome.findings} == {"depends on the schedule"}
    assert "1 of 8 elements of y have other bits under seed 2" in outcome.findings[0].seen


@pytest.mark.parametrize(("device", "found"), [("cpu", ["device memory kept"]), ("gpu", [])])
def test_memory_that_calls_keep_is_a_finding(
    tmp_path: Path, device: Literal["gpu", "cpu"], found: list[str]
) -> None:
    """Fault: a launcher that leaks a little in each call passes; or memory used by other processes of a
    GPU is reported."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        return replace(output, held=25_600) if run.mode == "many-calls" else output

    made = subject(tmp_path, written, fixtures=("one",), plans=plans, leaves=leaves)
    made.device.name = device
    (outcome,) = check_determinism(made)
    assert [f.kind for f in outcome.findings] == found


def test_atomics_are_tried_under_more_schedules(tmp_path: Path) -> None:
    """Fault: a float sum whose few orders happen to give the same bits under three seeds."""

    def adds(job: Job) -> Execution:
        last = int(job.options["seed"] == "8")
        return replace(written(job, change=last), counters={"by_class": {"atomic": 12}})

    made = on_cpu(tmp_path, adds)
    (outcome,) = check_determinism(made)
    assert outcome.measures["schedules"] == 9
    assert "under seed 8 than under seed 0" in outcome.findings[0].seen


@pytest.mark.parametrize(("change", "verdict"), [(1, Verdict.CLEAN), (1 << 30, Verdict.FINDINGS)])
def test_drift_is_allowed_between_schedules(tmp_path: Path, change: int, verdict: Verdict) -> None:
    """Fault: a sum that may drift is held to its bits, or any change passes for drift."""
    loose = replace(
        CONTRACT,
        drift=4.0,
        error_model=lambda case: {"y": t.add(t.exact(case.f64("x")), t.exact(case.f64("x")))},
    )
    made = on_cpu(tmp_path, lambda job: written(job, change=change), loose)
    assert check_determinism(made)[0].verdict is verdict


LOOSE = replace(
    CONTRACT,
    drift=4.0,
    error_model=lambda case: {"y": t.add(t.exact(case.f64("x")), t.exact(case.f64("x")))},
)


@pytest.mark.parametrize(("change", "verdict"), [(1, Verdict.CLEAN), (1 << 30, Verdict.FINDINGS)])
@pytest.mark.parametrize(
    ("run_id", "kind"),
    [("one.normal.repeat", "not repeatable"), ("one.normal.calls", "depends on the number of calls")],
)
def test_drift_is_allowed_between_calls(
    tmp_path: Path, run_id: str, kind: str, change: int, verdict: Verdict
) -> None:
    """Fault: on a GPU a sum that may drift is held to its bits, or any other call passes for drift."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.id != run_id:
            return output
        assert run.keep_differing
        other = output.outputs["y"].copy()
        other[1, 3] ^= change
        kept = (Differing(7, output.outputs, {"y": other}),)
        return replace(output, differences=(Difference(7, "y", 28, 1),), difference_count=1, differing=kept)

    made = subject(tmp_path, fixtures=("one",), contract=LOOSE, plans=plans, leaves=leaves)
    (outcome,) = check_determinism(made)
    assert outcome.verdict is verdict
    if outcome.findings:
        assert [(f.kind, "by at most 4 of their bound" in f.promised) for f in outcome.findings] == [
            (kind, True)
        ]
        assert "1 of 8 elements of y, the first at [1, 3]" in outcome.findings[0].seen


@pytest.mark.parametrize(("change", "verdict"), [(1, Verdict.CLEAN), (1 << 30, Verdict.FINDINGS)])
def test_drift_is_allowed_between_a_row_and_its_batch(tmp_path: Path, change: int, verdict: Verdict) -> None:
    """Fault: a row whose sum runs in another order alone is held to its batch's bits, or to nothing."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.id != "one.normal.row1":
            return output
        moved = output.outputs["y"].copy()
        moved[0, 2] ^= change
        return replace(output, outputs={"y": moved})

    made = subject(tmp_path, fixtures=("one",), contract=LOOSE, plans=plans, leaves=leaves)
    (outcome,) = check_determinism(made)
    assert outcome.verdict is verdict
    assert {f.kind for f in outcome.findings} <= {"row depends on its batch"}
