"""Which cases and fills a check runs is what matrix.toml says."""

from __future__ import annotations

from tests.check.scripted import CONTRACT, build
from verify.check.matrix import cases_for, matrix, runs_for

PROFILES = ("plain", "normal", "other")
CASES = {profile: build("one", profile) for profile in PROFILES}


def test_a_check_of_control_paths_skips_other_profiles() -> None:
    """Fault: the tools miss a path of the kernel that the data takes, or run every profile."""
    assert {p.name for p in CONTRACT.profiles if p.control_path} == {"other"}
    assert [case.profile for case in cases_for("racecheck", CASES)] == ["plain", "other"]
    assert [case.profile for case in cases_for("compare", CASES)] == list(PROFILES)


def test_each_fill_is_a_run_and_live_only_is_another() -> None:
    """Fault: a fill under which no leak would show, or initcheck over memory that a fill has written."""
    poisoned = runs_for("poison", {"normal": CASES["normal"]})
    assert [run.fills.dead for run in poisoned] == ["nan", "inf", "huge", "stale"]
    assert all(
        {run.fills.workspace, run.fills.output, run.fills.shared} == {run.fills.dead} for run in poisoned
    )
    (live,) = runs_for("initcheck", {"normal": CASES["normal"]})
    assert live.mode == "live-only"


def test_two_checks_with_the_same_run_use_the_same_id() -> None:
    """Fault: a run that two checks share is executed twice; or two runs of one name, of which one is lost."""
    compared, poisoned = (runs_for(check, CASES) for check in ("compare", "poison"))
    assert {run.id for run in compared} & {run.id for run in poisoned} == {"one.plain.nan", "one.other.nan"}
    every = [run.id for run in poisoned]
    assert len(set(every)) == len(every)


def test_every_row_gives_its_reason() -> None:
    """Fault: a row of the matrix does not give its reason."""
    assert all(len(row.reason.split()) > 5 for row in matrix().values())
