"""Pace: what a run may take follows what others have taken, with room for larger ones and slower machines."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from tests.check.scripted import build, done, subject
from verify.check.pace import FACTOR, FLOOR_SECONDS, Pace
from verify.device.interface import Execution, Job
from verify.wire.run import Run

SMALL, LARGE = Run("small", build("one", rows=10)), Run("large", build("one", rows=1000))


def test_no_limit_before_a_run_has_ended() -> None:
    """Fault: the first run of a slow kernel, or under a slow tool, is a hang."""
    pace = Pace()
    assert pace.limit("native", SMALL) == inf
    pace.took("native", SMALL, 0.01)
    assert pace.limit("racecheck", SMALL) == inf


def test_fast_runs_have_the_minimum_limit() -> None:
    """Fault: a machine that stutters makes a hang of a run of milliseconds."""
    pace = Pace()
    pace.took("native", SMALL, 0.001)
    assert pace.limit("native", SMALL) == FLOOR_SECONDS


def test_a_run_of_more_elements_or_calls_has_more_time() -> None:
    """Fault: small fixtures come first, and the large one behind them counts as a hang."""
    pace = Pace()
    pace.took("native", SMALL, 2.0)
    assert pace.limit("native", SMALL) == FACTOR * 2.0
    assert pace.limit("native", LARGE) == pytest.approx(FACTOR * 200.0)
    assert pace.limit("native", replace(SMALL, repeats=100)) == pytest.approx(FACTOR * 200.0)


def test_a_small_run_after_a_large_one_has_the_same_limit() -> None:
    """Fault: a run whose time is all start-up is held to its share of elements."""
    pace = Pace()
    pace.took("native", LARGE, 3.0)
    pace.took("native", SMALL, 0.5)
    assert pace.limit("native", SMALL) == FACTOR * 3.0


@pytest.mark.parametrize("asked", ["", "600"])
def test_a_requested_limit_overrides_the_pace(
    tmp_path: Path, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: VERIFY_RUN_SECONDS does not help a kernel that is slow after quick runs."""
    monkeypatch.delenv("VERIFY_RUN_SECONDS", raising=False)
    if asked:
        monkeypatch.setenv("VERIFY_RUN_SECONDS", asked)
    limits = []

    def script(job: Job) -> Execution:
        job.took("small", 0.001)
        limits.append((job.timeout, job.limit("small")))
        return done(job)

    subject(tmp_path, script).start([SMALL], "job")
    assert limits == [(600, inf) if asked else (120, FLOOR_SECONDS)]
