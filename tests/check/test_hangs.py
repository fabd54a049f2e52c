"""After a hang: what is not tried any more, and what still is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.check.scripted import ScriptedDevice, build, done, record, subject
from verify.check.hangs import NATIVE, Hangs
from verify.check.launch import check_launch
from verify.check.sanitize import check_tools
from verify.device.interface import Execution, Job, RunResult, RunStatus
from verify.finding.finding import Verdict
from verify.wire.run import Run


def run(fixture: str, profile: str = "normal") -> Run:
    return Run(f"{fixture}.{profile}", build(fixture, profile))


def hangs(tools_tell: bool, **lanes: Sequence[str]) -> Hangs:
    """Hangs of the first profile of some fixtures, by lane."""
    made = Hangs(tools_tell)
    for lane, fixtures in lanes.items():
        runs = [run(f) for f in fixtures]
        ends = {r.id: RunResult(r.id, RunStatus.TIMEOUT, error="no end within 1 s") for r in runs}
        made.note(lane, runs, ends)
    return made


@pytest.mark.parametrize(
    ("tools_tell", "lanes", "lane", "tried"),
    [
        (True, {}, NATIVE, ["a", "b", "c"]),
        (True, {"native": "a"}, NATIVE, ["b", "c"]),
        (True, {"native": "ab"}, NATIVE, []),
        (True, {"racecheck": "ab"}, NATIVE, ["a", "b", "c"]),
        (True, {"racecheck": "ab"}, "memcheck", ["a", "b", "c"]),
        (True, {"racecheck": "a"}, "racecheck", ["b", "c"]),
        (True, {"native": "ab"}, "synccheck", ["a", "b", "c"]),
        (True, {"native": "ab", "synccheck": "a"}, "synccheck", []),
        (False, {"native": "a"}, "synccheck", ["b", "c"]),
        (False, {"native": "ab"}, "synccheck", []),
    ],
)
def test_runs_that_are_not_skipped(
    tools_tell: bool, lanes: dict[str, str], lane: str, tried: list[str]
) -> None:
    """Fault: a slow tool costs the native verdict, every fixture waits for the hang, or a tool that could
    report its cause is not run."""
    known = hangs(tools_tell, **lanes)
    assert [f for f in "abc" if not known.reason(lane, run(f, "other"))] == tried


def test_the_reason_names_the_hang_and_the_remedy() -> None:
    """Fault: the reason does not say what hung, or that the limit of a slow kernel can be raised."""
    one, two = hangs(True, native="a"), hangs(True, native="ab")
    assert "a.normal of the same fixture had no end within 1 s" in one.reason(NATIVE, run("a", "other"))
    assert "VERIFY_RUN_SECONDS" in one.reason(NATIVE, run("a", "other"))
    assert "a.normal and b.normal" in two.reason(NATIVE, run("c"))


def hang_under(job: Job, fixture: str, **more: object) -> Execution:
    """The device's end of a job whose runs of one fixture do not end, the first apart."""
    results: dict[str, RunResult] = {}
    for name in job.runs:
        if why := job.skip(name, results):
            results[name] = RunResult(name, RunStatus.LEFT_OUT, error=why)
        elif name.startswith(f"{fixture}."):
            results[name] = RunResult(name, RunStatus.TIMEOUT, error="no end within 1 s")
        else:
            results[name] = RunResult(name, RunStatus.DONE, kernels=1)
    hung = any(r.status is RunStatus.TIMEOUT for r in results.values())
    return Execution(job, results, doubt="ended with the run that hung" if hung else "", **more)  # type: ignore[arg-type]


def test_a_hang_under_a_tool_costs_one_wait_and_leaves_the_others_clean(tmp_path: Path) -> None:
    """Fault: the hung run is repeated alone for nothing; or its neighbours, ended with it, stay in doubt."""
    made = subject(tmp_path, lambda job: hang_under(job, "one"))
    verdicts = {o.fixture: o.verdict for o in check_tools(made, ["memcheck"])}
    assert verdicts == {"one": Verdict.INCONCLUSIVE, "two": Verdict.CLEAN}
    device = made.device
    assert isinstance(device, ScriptedDevice)
    assert [j.runs for j in device.jobs if any(r.startswith("one.") for r in j.runs)] == [device.jobs[0].runs]


def test_a_hung_run_with_records_is_repeated_alone(tmp_path: Path) -> None:
    """Fault: what the tool said of the hang before it was ended belongs to no case, so it is lost."""
    said = record("synccheck", "divergent barrier")
    made = subject(
        tmp_path,
        lambda job: hang_under(job, "one", records=(said,)) if _has(job, "one") else done(job),
    )
    outcomes = {o.fixture: o for o in check_tools(made, ["synccheck"])}
    assert [f.kind for f in outcomes["one"].findings] == ["divergent barrier"]
    assert outcomes["two"].verdict is Verdict.CLEAN


def _has(job: Job, fixture: str) -> bool:
    return any(r.startswith(f"{fixture}.") for r in job.runs)


def test_a_skipped_check_of_stream_order_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: racecheck hangs in a fixture, the check of stream order is skipped, and launch is clean."""
    made = subject(tmp_path, lambda job: hang_under(job, "one") if job.tool else done(job))
    made.device.name = "cpu"
    monkeypatch.setattr("verify.check.launch.build_interposer", lambda: tmp_path / "none.so")
    outcomes = {o.fixture: o for o in check_launch(made)}
    assert outcomes["one"].verdict is Verdict.INCONCLUSIVE
    assert "order of streams" in outcomes["one"].reason
