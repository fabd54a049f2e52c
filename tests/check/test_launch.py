"""launch: swallowed errors, accepted bad input, and outputs of graphs and streams that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.check.scripted import CONTRACT, build, done, right_output, subject
from verify.check import launch
from verify.check.launch import check_launch
from verify.check.native import not_done
from verify.check.refusals import refusal_runs, refused_case, with_fitting_arrays
from verify.check.subject import Ran
from verify.contract.entries import Launcher, Refusal
from verify.contract.model import Case, Contract
from verify.contract.symbols import Symbol
from verify.device.interface import Execution, Job, RunResult, RunStatus, ToolRecord
from verify.finding.finding import Outcome, Verdict
from verify.fixture.schema import Fixture, FixtureError
from verify.harness.plan import PlanError
from verify.oracle import tracked as t
from verify.wire.output import Difference, Differing, Intrusion, RunOutput
from verify.wire.run import Run

SWEPT = (
    "pass=1 call=1 calls=2 failed=cudaFuncSetAttribute returned=cudaErrorUnknown",
    "pass=1 call=2 calls=2 failed=cudaLaunchKernel returned=cudaErrorUnknown",
    "pass=1 call=3 calls=2 failed=- returned=cudaSuccess",
)


@pytest.fixture(autouse=True)
def interposer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "build_interposer", lambda: Path("interposer.so"))


def sweeps(lines: Sequence[str] = SWEPT) -> Callable[[Job], Execution]:
    """A device on which the sweep says these lines."""
    return lambda job: done(job, faults=dict.fromkeys(job.runs, lines))


def kinds(outcomes: list[Outcome]) -> list[list[str]]:
    return [[f.kind for f in outcome.findings] for outcome in outcomes]


def test_a_right_launcher_is_clean_and_everything_ran(tmp_path: Path) -> None:
    """Fault: clean although a mode, a refusal or the sweep was skipped."""
    made = subject(tmp_path, sweeps())
    outcomes = check_launch(made)
    assert [o.verdict for o in outcomes] == [Verdict.CLEAN] * 2
    assert outcomes[0].measures == {"failed calls": 2, "refusals": 3, "modes": 5}
    assert outcomes[1].measures["refusals"] == 0
    modes = {run.mode for run in made.asked}
    assert modes == {"second-call", "graph", "late-producer", "two-streams", "two-threads", "refuse"}
    assert made.device.jobs[-1].environment["LD_PRELOAD"] == "interposer.so"


def test_a_swallowed_error_names_the_call(tmp_path: Path) -> None:
    """Fault: a launcher that returns success when its launch failed."""
    lines = [SWEPT[0], SWEPT[1].replace("cudaErrorUnknown", "cudaSuccess"), SWEPT[2]]
    outcomes = check_launch(subject(tmp_path, sweeps(lines), fixtures=("one",)))
    assert kinds(outcomes) == [["launch error swallowed"]]
    assert "cudaLaunchKernel, call 2 of 2" in outcomes[0].findings[0].seen


def test_a_launcher_that_stays_broken_is_a_finding(tmp_path: Path) -> None:
    """Fault: a static flag set before the failure keeps later calls from working."""
    lines = [*SWEPT[:2], SWEPT[2].replace("cudaSuccess", "cudaErrorUnknown")]
    outcomes = check_launch(subject(tmp_path, sweeps(lines), fixtures=("one",)))
    assert kinds(outcomes) == [["no recovery after an error"]]


def test_a_crash_in_the_sweep_is_a_finding(tmp_path: Path) -> None:
    """Fault: a launcher that dies on an error looks as if it had reported it."""

    def dies(job: Job) -> Execution:
        results = {r: RunResult(r, RunStatus.FAULT, error="killed by SIGSEGV") for r in job.runs}
        return Execution(job, results, faults=dict.fromkeys(job.runs, SWEPT[:1]))

    outcomes = check_launch(subject(tmp_path, dies, fixtures=("one",)))
    assert kinds(outcomes) == [["fault after a failed call"]]
    assert "cudaFuncSetAttribute" in outcomes[0].findings[0].seen


def test_without_the_interposer_there_is_no_verdict(tmp_path: Path) -> None:
    """Fault: a library that did not load makes every launcher pass."""
    outcomes = check_launch(subject(tmp_path, fixtures=("one",)))
    assert outcomes[0].verdict is Verdict.INCONCLUSIVE
    assert "no runtime call was made to fail" in outcomes[0].reason


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"returned": "cudaSuccess"}, "bad input accepted"),
        ({"kernels": 2}, "launched on bad input"),
        ({"intrusions": (Intrusion("y", 0, 4),), "intrusion_count": 1}, "wrote on bad input"),
    ],
)
def test_a_launchers_faults_with_bad_input(tmp_path: Path, change: dict[str, object], kind: str) -> None:
    """Fault: bad input is taken, launched on, or answered by writing the output."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        return replace(output, **change) if run.id == "one.refuse-null-x" else output  # type: ignore[arg-type]

    outcomes = check_launch(subject(tmp_path, sweeps(), leaves=leaves))
    assert kinds(outcomes) == [[kind], []]
    assert outcomes[0].findings[0].details == (("changed", "x is null"),)


def test_a_graph_is_captured_at_other_values(tmp_path: Path) -> None:
    """Fault: replay on the values that it was captured at proves nothing."""
    made = subject(tmp_path, sweeps(), fixtures=("one",))
    check_launch(made)
    (graph,) = [run for run in made.asked if run.mode == "graph"]
    assert graph.captured is not None
    assert (graph.case["factor"], graph.captured["factor"]) == ((2, 3), (1, 1))


def test_two_streams_get_different_data(tmp_path: Path) -> None:
    """Fault: with the same data on both, a shared workspace holds the right values."""
    made = subject(tmp_path, sweeps(), fixtures=("one",))
    check_launch(made)
    (streams,) = [run for run in made.asked if run.mode == "two-streams"]
    assert streams.captured is not None
    assert streams.captured.profile == "other"


@pytest.mark.parametrize("mode", ["second-call", "graph", "late-producer", "two-streams", "two-threads"])
def test_a_wrong_output_of_any_mode_is_a_finding(tmp_path: Path, mode: str) -> None:
    """Fault: the mode runs, but its outputs are not judged."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.mode != mode:
            return output
        return replace(output, outputs={"y": np.full_like(output.outputs["y"], 0x40400000)})

    (outcome,) = check_launch(subject(tmp_path, sweeps(), fixtures=("one",), leaves=leaves))
    assert [f.kind for f in outcome.findings] == ["outside the bound"]
    assert ("mode", mode) in outcome.findings[0].details


def test_a_wrong_second_stream_and_a_difference_are_findings(tmp_path: Path) -> None:
    """Fault: only the first stream's output is judged."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.mode != "two-streams":
            return output
        wrong = {"y": np.full_like(output.second["y"], 0x40400000)}
        return replace(output, second=wrong, differences=(Difference(1, "y", 4, 4),), difference_count=1)

    (outcome,) = check_launch(subject(tmp_path, sweeps(), fixtures=("one",), leaves=leaves))
    assert [f.kind for f in outcome.findings] == ["outside the bound", "streams disturb each other"]


def test_interfering_threads_are_reported_as_threads(tmp_path: Path) -> None:
    """Fault: a static variable of the launcher is looked for among its streams."""

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.mode != "two-threads":
            return output
        return replace(output, differences=(Difference(1, "y", 4, 4),), difference_count=1)

    (outcome,) = check_launch(subject(tmp_path, sweeps(), fixtures=("one",), leaves=leaves))
    assert [f.kind for f in outcome.findings] == ["threads disturb each other"]


def test_an_entry_without_a_stream_has_no_stream_modes(tmp_path: Path) -> None:
    """Fault: modes that the harness must refuse are reported as the kernel's fault."""
    plain = replace(CONTRACT, entry=Launcher("double_launch", ("x", "y", "rows")))
    made = subject(tmp_path, sweeps(), fixtures=("one",), contract=plain)
    (outcome,) = check_launch(made)
    assert outcome.measures["modes"] == 1
    assert {run.mode for run in made.asked} == {"second-call", "refuse"}


def refused(rows: int, refusal: Refusal, contract: Contract = CONTRACT) -> Case:
    base = build("one", rows=rows, contract=contract)
    given = {"rows": rows, "factor": list(base["factor"])}
    return refused_case(base, Fixture("double", "one", "pins one", given), refusal)


def test_a_refused_case_follows_its_symbols() -> None:
    """Fault: a larger batch with lists and arrays of the smaller one cannot even be packed."""
    more = with_fitting_arrays(refused(2, Refusal("more", {"rows": "rows + 1"})))
    assert more["rows"] == 3
    assert more["factor"] == (2, 3, 2)
    assert more.arrays == {}
    same = with_fitting_arrays(refused(2, Refusal("null", null=("x",))))
    assert same.arrays.keys() == build("one").arrays.keys()


def test_defaults_that_depend_on_a_bad_value_change_with_it() -> None:
    """Fault: a pitch that is not adjusted is rejected by its own guard, so that the intended guard is
    never reached."""
    pitch = Symbol("pitch", default="4 * rows", minimum=1)
    contract = replace(CONTRACT, symbols=(*CONTRACT.symbols, pitch))
    assert refused(2, Refusal("more", {"rows": 5}), contract)["pitch"] == 20
    assert refused(2, Refusal("none", {"rows": 0}), contract)["pitch"] == 0
    assert refused(2, Refusal("odd", {"rows": 5, "pitch": "rows - 3"}), contract)["pitch"] == -1


def test_a_workspace_has_the_size_that_the_plan_gives_for_bad_input(tmp_path: Path) -> None:
    """Fault: the fixture's small workspace is what refuses the call, whatever guard the launcher has lost."""
    made = subject(tmp_path, sweeps(), fixtures=("one",))
    made.offers = lambda asked: [{"auto": 7 + int(symbols["rows"])} for symbols in asked]
    (runs,) = refusal_runs(made, "nan").values()
    assert [run.case["auto"] for run in runs] == [7, 9, 10]

    def dies_of_none(asked: Sequence[Mapping[str, Any]]) -> list[Mapping[str, int]]:
        if any(symbols["rows"] == 0 for symbols in asked):
            raise PlanError("division by zero")
        return [{"auto": 7 + int(symbols["rows"])} for symbols in asked]

    made.offers = dies_of_none
    (runs,) = refusal_runs(made, "nan").values()
    assert [run.case["auto"] for run in runs] == [5, 9, 10]


@pytest.mark.parametrize(
    ("promised", "found"),
    [(None, []), ("cudaErrorInvalidValue", []), ("cudaErrorInvalidConfiguration", ["another error"])],
)
def test_bad_input_is_refused_by_the_error_that_was_promised(
    tmp_path: Path, promised: str | None, found: list[str]
) -> None:
    """Fault: an error that comes from elsewhere, such as the runtime's own, passes for the guard's."""
    contract = replace(CONTRACT, refusals=(Refusal("none", {"rows": 0}, error=promised),))
    (outcome,) = check_launch(subject(tmp_path, sweeps(), fixtures=("one",), contract=contract))
    assert [kind for f in outcome.findings for kind in found if kind in f.kind] == found
    assert len(outcome.findings) == len(found)


def test_a_refusal_with_an_impossible_buffer_is_named() -> None:
    """Fault: a division by zero in a shape ends the command without naming the refusal that caused it."""
    x = replace(CONTRACT.buffers[0], shape=("8 // rows", 4))
    contract = replace(CONTRACT, buffers=(x, *CONTRACT.buffers[1:]))
    with pytest.raises(FixtureError, match=r"double: refusal none: x: .*zero"):
        refused(2, Refusal("none", {"rows": 0}), contract)


@pytest.mark.parametrize(
    ("kind", "doubt", "verdict"),
    [
        ("", "", Verdict.CLEAN),
        ("", "no kernel ran", Verdict.INCONCLUSIVE),
        ("Race on __shared__ memory, Read then Write (WAR)", "", Verdict.CLEAN),
        ("Race between unordered operations", "", Verdict.FINDINGS),
    ],
)
def test_the_order_of_streams_is_judged_by_racechecks_records(
    tmp_path: Path, kind: str, doubt: str, verdict: Verdict
) -> None:
    """Fault: a racecheck that did not run passes, or a race inside the kernel is reported twice."""
    records = (ToolRecord("racecheck", kind, "message"),) if kind else ()

    def script(job: Job) -> Execution:
        return done(job, records=records, doubt=doubt) if job.tool else sweeps()(job)

    made = subject(tmp_path, script, fixtures=("one",))
    made.device.name = "cpu"
    assert check_launch(made)[0].verdict is verdict


def test_the_harness_is_reported_as_the_caller(tmp_path: Path) -> None:
    """Fault: a finding names a kernel that the user does not have."""
    seen = "kernel k(int*) on stream 0 reads what kernel verify::move(char*, bool) on stream 1 writes"
    records = (ToolRecord("racecheck", "Race between unordered operations", seen),)
    made = subject(
        tmp_path, lambda job: done(job, records=records) if job.tool else sweeps()(job), fixtures=("one",)
    )
    made.device.name = "cpu"
    late, streams = check_launch(made)[0].findings
    for finding in (late, streams):
        assert finding.seen == "kernel k(int*) on stream 0 reads what the caller's work on stream 1 writes"
    assert "the caller's stream" in late.promised and "two streams" in streams.promised


def test_a_fault_on_bad_input_names_the_refusal(tmp_path: Path) -> None:
    """Fault: a launcher that accepts a null pointer is reported as a fault of the case, which does not
    reproduce it."""
    made = subject(tmp_path, sweeps(), fixtures=("one",))
    (case,) = [c for c in made.cases["one"].values() if c.profile == "normal"]
    refused = Run("one.refuse-null-x", case, "refuse")
    ended = RunResult(refused.id, RunStatus.FAULT, error="cudaErrorIllegalAddress")
    outcome = not_done("launch", made, "one", [Ran(refused, ended, None)])
    assert outcome is not None
    (finding,) = outcome.findings
    assert (finding.kind, finding.where) == ("fault on bad input", "refusal null-x")
    assert finding.promised.startswith("bad input returns an error")


@pytest.mark.parametrize(("change", "found"), [(1, []), (1 << 30, ["streams disturb each other"])])
@pytest.mark.parametrize("second", [False, True])
def test_drift_is_allowed_between_rounds_of_two_streams(
    tmp_path: Path, second: bool, change: int, found: list[str]
) -> None:
    """Fault: an atomic sum that may drift disturbs itself, or what the other stream did to it is drift."""
    loose = replace(
        CONTRACT,
        drift=4.0,
        error_model=lambda case: {"y": t.add(t.exact(case.f64("x")), t.exact(case.f64("x")))},
    )

    def leaves(run: Run) -> RunOutput:
        output = right_output(run)
        if run.mode != "two-streams":
            return output
        assert run.keep_differing
        first = output.second if second else output.outputs
        other = first["y"].copy()
        other[1, 3] ^= change
        kept = (Differing(1, first, {"y": other}, second),)
        return replace(output, differences=(Difference(1, "y", 28, 1),), difference_count=1, differing=kept)

    made = subject(tmp_path, sweeps(), fixtures=("one",), contract=loose, leaves=leaves)
    (outcome,) = check_launch(made)
    assert [f.kind for f in outcome.findings] == found
