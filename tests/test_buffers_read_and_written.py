"""A buffer that is read in one part and written in another: an append to a cache, right and with faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.contract.discovery import find_contracts
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Verdict
from verify.gate.gate import run_gate
from verify.gate.selection import Selection

SOURCE = """\
#include <cuda_runtime.h>

// Row `position` becomes x plus the row before it. fault: 1 a wrong value, 2 not all of it, 3 an old row too.
__global__ void append(const float* x, float* cache, int position, int columns, int fault) {
    const int c = threadIdx.x;
    if (c >= columns - (fault == 2)) return;
    float* row = cache + position * columns;
    row[c] = x[c] + row[c - columns] + (fault == 1);
    if (fault == 3) row[c - columns] = 0.0f;
}
"""

CONTRACT = """\
import numpy as np

from verify import Buffer, Contract, Global, Symbol
from verify.oracle import tracked as t


def rows(case):
    return np.arange(case["rows"])[:, None]


def appended(case):
    cache, position = np.nan_to_num(case.f64("cache")), case["position"]
    cache[position] = case.f64("x") + cache[position - 1]
    return {"cache": cache}


def modelled(case):
    cache, position = np.nan_to_num(case.f64("cache")), case["position"]
    row = t.exact(case.f64("x")) + t.exact(cache[position - 1])
    bound = np.zeros_like(cache)
    cache[position], bound[position] = row.value, row.bound
    return {"cache": t.Tracked(cache, bound)}


CONTRACT = Contract(
    name="append", source="append.cu",
    symbols=("rows", Symbol("position", minimum=1), "columns", Symbol("fault", default=0)),
    buffers=(
        Buffer("x", "f32", ("columns",)),
        Buffer("cache", "f32", ("rows", "columns"), "inout",
               live=lambda case: rows(case) < case["position"],
               promised=lambda case: rows(case) == case["position"]),
    ),
    entry=Global("append", (1,), (64,), ("x", "cache", "position", "columns", "fault")),
    reference=appended, error_model=modelled,
)
"""
FIXTURES = """\
kernel = "append"
[defaults]
rows = 5
position = 3
columns = 48
[[fixture]]
name = "right"
pins = "Nothing: it must be clean."
[[fixture]]
name = "wrong-value"
pins = "The new row's values."
symbols = {fault = 1}
[[fixture]]
name = "unwritten"
pins = "The new row's last column."
symbols = {fault = 2}
[[fixture]]
name = "old-row"
pins = "Rows that are read and not written."
symbols = {fault = 3}
"""


def test_the_new_row_is_judged_and_the_old_ones_stay(tmp_path: Path, device_name: str) -> None:
    """Fault: what is compared of such a buffer is the part that is read, not the part that is written; or
    initcheck has no verdict because the written part holds nothing before the call."""
    device = select_device(device_name)
    if isinstance(device, NoDevice):
        pytest.skip(device.reason)
    (tmp_path / "append.cu").write_text(SOURCE)
    (tmp_path / "append_contract.py").write_text(CONTRACT)
    (tmp_path / "append.toml").write_text(FIXTURES)
    checks = ("compare", "poison", "initcheck", "determinism", "launch")
    selection = Selection(tuple(find_contracts([str(tmp_path)])), checks=checks, architecture="sm_90")
    report = run_gate(selection, device, "", lambda text: None)
    outcomes = [outcome for kernel in report.kernels for outcome in kernel.outcomes]
    verdicts = {(o.fixture, o.check): (o.verdict, o.reason) for o in outcomes}
    assert {verdicts["right", check] for check in checks} == {(Verdict.CLEAN, "")}
    kinds = {name: set[str]() for name in ("wrong-value", "unwritten", "old-row")}
    for outcome in outcomes:
        if outcome.check == "compare" and outcome.fixture in kinds:
            kinds[outcome.fixture] |= {finding.kind for finding in outcome.findings}
    assert kinds["wrong-value"] == {"outside the bound"}
    assert kinds["unwritten"] == {"unwritten output"}
    assert kinds["old-row"] == {"write outside the promised bytes"}
