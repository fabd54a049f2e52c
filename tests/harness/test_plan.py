"""Asking the launcher's plan: on the real runtime, without a driver, many at a time."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.harness.guarded_kernel import CONTRACT as GUARDED
from verify.harness.build import Build
from verify.harness.plan import PlanError, ask_plans, query_plans, require_plans

BASE = {"scale": 2.0, "swallow": 0}


def test_plans_come_back_in_order_with_their_fields(guarded: Build) -> None:
    """Fault: answers given to the wrong fixture, and a multiprocessor count that does not arrive."""
    plans = query_plans(guarded, GUARDED, [{**BASE, "n": n} for n in (1, 64, 65, 6400)], 8)
    assert [p["blocks"] for p in plans] == [1, 1, 2, 100]
    assert [p["rounds"] for p in plans] == [1, 1, 1, 13]
    assert [p["workspace_bytes"] for p in plans] == [16, 16, 32, 1600]


def test_a_rejection_differs_from_a_plan(guarded: Build) -> None:
    """Fault: the numbers of a rejected plan count as a plan."""
    requests = [{**BASE, "n": 0}, {**BASE, "n": 5}]
    assert query_plans(guarded, GUARDED, requests, 8)[0] == {}
    assert ask_plans(guarded, GUARDED, requests, 8)[0]["error"] == "cudaErrorInvalidValue"
    with pytest.raises(PlanError, match=r"guarded_plan_of rejects scale=2\.0, swallow=0, n=0"):
        require_plans(guarded, GUARDED, requests, 8)


def test_a_symbol_too_large_for_its_parameter_is_a_refusal(guarded: Build) -> None:
    """Fault: n wrapped to 32 bits, for which there would be a plan."""
    (answer,) = ask_plans(guarded, GUARDED, [{**BASE, "n": (1 << 32) + 5}], 8)
    assert "does not fit its 32-bit parameter" in answer["error"]


def test_a_broken_request_ends_in_one_line(guarded: Build) -> None:
    done = subprocess.run(
        [guarded.binary, "plan"],
        input="0 8 - i:1\n",
        env={**os.environ, **guarded.toolchain.run_environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "plan request 1: expected ID SM_COUNT NULLS and 3 values\n"
