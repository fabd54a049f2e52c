"""The tool checks: a batch as the fast path, suspects alone, and no verdict without proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.check.scripted import done, record, subject
from verify.check.sanitize import check_tools
from verify.check.tool_findings import distinct_faults
from verify.device.interface import Availability, Execution, Job, RunResult, RunStatus, ToolRecord
from verify.finding.finding import Outcome, Severity, Verdict


def verdicts(outcomes: list[Outcome]) -> dict[str, Verdict]:
    return {outcome.fixture: outcome.verdict for outcome in outcomes}


def test_a_silent_batch_with_proof_is_clean_in_one_process(tmp_path: Path) -> None:
    """Fault: a process for each case, or no verdict at all."""
    made = subject(tmp_path)
    outcomes = check_tools(made, ["memcheck"])
    assert verdicts(outcomes) == {"one": Verdict.CLEAN, "two": Verdict.CLEAN}
    assert len(made.device.jobs) == 1
    assert len(made.device.jobs[0].runs) == 4


def test_all_tools_run_each_over_all_cases(tmp_path: Path) -> None:
    """Fault: a tool is not run."""
    made = subject(tmp_path)
    outcomes = check_tools(made, ["memcheck", "initcheck", "racecheck", "synccheck"])
    assert {o.check for o in outcomes} == {"memcheck", "initcheck", "racecheck", "synccheck"}
    assert len(outcomes) == 8
    assert sorted(job.tool or "" for job in made.device.jobs) == sorted(
        ["memcheck", "initcheck", "racecheck", "synccheck"]
    )


def test_initcheck_writes_only_live_bytes_and_no_tool_fills_shared_memory(tmp_path: Path) -> None:
    """Fault: a fill counts as a write, so initcheck sees nothing; or a tool spends its time on our kernel."""
    made = subject(tmp_path)
    check_tools(made, ["initcheck", "racecheck"])
    packs = {job.tool: job.pack.read_text() for job in made.device.jobs}
    assert packs["initcheck"].count(" mode live-only ") == 4
    assert packs["racecheck"].count(" shared - ") == 4


def faulty(job: Job) -> Execution:
    """Fixture ``one`` has a fault, seen in the batch and alone."""
    if any(run.startswith("one.normal") for run in job.runs):
        return done(job, records=(record(job.tool or "memcheck", "Invalid read", address="tile + 4 (0x4)"),))
    return done(job)


def test_a_record_of_the_batch_is_given_to_the_case_that_repeats_it(tmp_path: Path) -> None:
    """Fault: a finding without its case, or blamed on every case."""
    made = subject(tmp_path, faulty)
    outcomes = check_tools(made, ["memcheck"])
    assert verdicts(outcomes) == {"one": Verdict.FINDINGS, "two": Verdict.CLEAN}
    (finding,) = outcomes[0].findings
    assert finding.case == "double/one/normal"
    assert (str(finding.source), finding.function) == ("k.cu:7", "double")
    assert dict(finding.details)["address"] == "tile + 4 (0x4)"
    assert finding.repeat == "python -m verify sanitize --tool memcheck double -k one --device gpu"
    assert sorted((len(j.runs), j.options["print-limit"]) for j in made.device.jobs) == [
        *[(1, "2000")] * 4,
        (4, "500"),
    ]


def test_a_record_that_nothing_repeats_is_not_lost(tmp_path: Path) -> None:
    """Fault: a race that shows once in the batch and not again passes for clean."""
    made = subject(tmp_path, lambda j: faulty(j) if len(made.device.jobs) == 1 else done(j))
    outcomes = check_tools(made, ["racecheck"])
    assert verdicts(outcomes) == {"one": Verdict.INCONCLUSIVE, "two": Verdict.INCONCLUSIVE}
    assert "no single case reproduces: Invalid read somewhere" in outcomes[0].reason


@pytest.mark.parametrize(("calls", "case"), [(2, "double/one/other"), (3, "double/two/normal")])
def test_a_fault_that_needs_earlier_calls_is_attributed_to_the_case_that_shows_it(
    tmp_path: Path, calls: int, case: str
) -> None:
    """Fault: a counter in a __device__ variable makes every fixture unsure, and names none."""

    def counts(job: Job) -> Execution:
        return done(job, records=(record("memcheck", "Invalid write"),) if len(job.runs) >= calls else ())

    outcomes = check_tools(subject(tmp_path, counts), ["memcheck"])
    found = [f for o in outcomes for f in o.findings]
    assert [(f.case, f.kind) for f in found] == [(case, "Invalid write")]
    assert dict(found[0].details)["after"].startswith(f"{calls - 1} call")
    assert found[0].repeat == "python -m verify sanitize --tool memcheck double --device gpu"
    assert sorted(verdicts(outcomes).values()) == [Verdict.CLEAN, Verdict.FINDINGS]


def test_a_doubt_is_inconclusive_with_its_reason(tmp_path: Path) -> None:
    """Fault: a tool without a summary line passes for clean."""
    outcomes = check_tools(subject(tmp_path, lambda j: done(j, doubt="no summary line")), ["memcheck"])
    assert set(verdicts(outcomes).values()) == {Verdict.INCONCLUSIVE}
    assert "no summary line" in outcomes[0].reason


def test_a_missed_tripwire_is_inconclusive(tmp_path: Path) -> None:
    """Fault: a tool that cannot see the planted fault gives clean verdicts."""
    outcomes = check_tools(subject(tmp_path, trips=Availability(False, "misses its tripwire")), ["synccheck"])
    assert {o.reason for o in outcomes} == {"misses its tripwire"}


def test_a_missed_tripwire_does_not_hide_findings(tmp_path: Path) -> None:
    """Fault: a real record is thrown away because the tool is in doubt."""
    made = subject(tmp_path, faulty, trips=Availability(False, "misses its tripwire"))
    assert verdicts(check_tools(made, ["memcheck"])) == {
        "one": Verdict.FINDINGS,
        "two": Verdict.INCONCLUSIVE,
    }


def test_a_hung_run_costs_only_its_own_fixture(tmp_path: Path) -> None:
    """Fault: one hang takes the verdict of all cases in the batch."""

    def hangs(job: Job) -> Execution:
        execution = done(job, doubt="ended with the run that hung" if len(job.runs) > 1 else "")
        results = dict(execution.results)
        for run in job.runs:
            if run.startswith("two.other"):
                results[run] = RunResult(run, RunStatus.TIMEOUT, error="no end within 300 s")
        return Execution(job, results, doubt=execution.doubt)

    outcomes = check_tools(subject(tmp_path, hangs), ["racecheck"])
    assert verdicts(outcomes) == {"one": Verdict.CLEAN, "two": Verdict.INCONCLUSIVE}
    assert "no end within 300 s" in outcomes[1].reason


def test_a_tool_that_is_not_there_is_not_run_and_not_repeated(tmp_path: Path) -> None:
    """Fault: a missing tool passes for clean, or is tried once for each case."""

    def missing(job: Job) -> Execution:
        results = {r: RunResult(r, RunStatus.NOT_RUN, error="install it") for r in job.runs}
        return Execution(job, results, doubt="install it")

    made = subject(tmp_path, missing)
    outcomes = check_tools(made, ["memcheck"])
    assert {(o.verdict, o.reason) for o in outcomes} == {(Verdict.NOT_RUN, "install it")}
    assert len(made.device.jobs) == 1


def test_a_run_that_does_not_fit_into_memory_is_retried_alone(tmp_path: Path) -> None:
    """Fault: memory taken by the other tools turns into "not run"."""
    sizes: list[int] = []

    def tight(job: Job) -> Execution:
        sizes.append(len(job.runs))
        results = dict(done(job).results)
        run = "one.normal.stale"
        if len(sizes) < 3 and run in results:
            results[run] = RunResult(run, RunStatus.REFUSED_MEMORY, error="needs")
        return Execution(job, results)

    outcomes = check_tools(subject(tmp_path, tight), ["memcheck"])
    assert verdicts(outcomes) == {"one": Verdict.CLEAN, "two": Verdict.CLEAN}
    assert sizes == [4, 1, 1]


def test_a_warning_is_printed_and_changes_the_verdict_only_under_strict(tmp_path: Path) -> None:
    """Fault: a warning fails the gate, or disappears."""

    def warns(job: Job) -> Execution:
        return done(job, records=(record("racecheck", "RAW hazard", severity=Severity.WARNING),))

    made = subject(tmp_path, warns, fixtures=("one",))
    (outcome,) = check_tools(made, ["racecheck"])
    assert (outcome.verdict, len(outcome.findings)) == (Verdict.CLEAN, 2)
    made.strict = True
    (outcome,) = check_tools(made, ["racecheck"])
    assert outcome.verdict is Verdict.FINDINGS


def test_tools_with_the_same_runs_share_a_process_on_the_cpu_device(tmp_path: Path) -> None:
    """Fault: four passes of the machine where two do; or a record is given to another tool than its own."""

    def races(job: Job) -> Execution:
        if any(run.startswith("one.normal.stale") for run in job.runs):
            failed = record("api", "cudaFree failed", 1, "host")
            return done(job, records=(record("racecheck", "race"), failed))
        return done(job)

    made = subject(tmp_path, races)
    made.device.name = "cpu"
    outcomes = check_tools(made, ["memcheck", "initcheck", "racecheck", "synccheck"])
    batches = {job.tool: job.options for job in made.device.jobs if len(job.runs) == 4}
    assert batches == {"memcheck": {"tools": "racecheck,synccheck"}, "initcheck": {}}
    found = {(o.check, o.fixture): [f.kind for f in o.findings] for o in outcomes if o.findings}
    assert found == {("memcheck", "one"): ["cudaFree failed"], ("racecheck", "one"): ["race"]}
    clean = {(o.check, o.fixture) for o in outcomes if o.verdict is Verdict.CLEAN}
    assert len(clean) == 6


def test_an_analysis_record_and_a_consequence_are_no_second_finding() -> None:
    """Fault: one missing barrier, or one bad access, is counted several times over."""
    hazard = record("racecheck", "RAW hazard", 8)
    summed, other = record("racecheck", "race", 8), record("racecheck", "race", 30)
    assert distinct_faults([hazard, summed, other]) == [hazard, other]
    access = record("memcheck", "Invalid __global__ read of size 4 bytes")
    text = "Program hit cudaErrorLaunchFailure on CUDA API call to cudaDeviceSynchronize"
    failed = ToolRecord("memcheck", text, text)
    assert distinct_faults([access, failed]) == [access]
    assert distinct_faults([failed]) == [failed]


def test_an_access_to_a_dead_byte_is_described_by_the_contract(tmp_path: Path) -> None:
    """Fault: a person reads of regions and heaps, which stand nowhere in kernel or contract."""
    seen = replace(
        record("memcheck", "Invalid read"), message="the bytes lie in no registered live region of their heap"
    )
    (outcome, *_) = check_tools(subject(tmp_path, lambda job: done(job, records=(seen,))), ["memcheck"])
    assert outcome.findings[0].seen.startswith("the contract declares these bytes dead")
