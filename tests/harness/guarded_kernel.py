"""The contract of kernels/guarded.cu, and cases of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from verify.contract.compared import Intermediate
from verify.contract.entries import Launcher
from verify.contract.model import Buffer, Case, Contract, Plan
from verify.contract.symbols import Symbol
from verify.oracle.tracked import exact

FOLDER = Path(__file__).parent / "kernels"


def scaled(case: Case) -> dict[str, np.ndarray]:
    return {"y": case["scale"] * case.f64("x")}


CONTRACT = Contract(
    name="guarded",
    source="guarded.cu",
    symbols=("n", Symbol("scale", "float", 2.0), Symbol("swallow", default=0)),
    buffers=(
        Buffer("x", "f32", ("n",), align=4),
        Buffer("y", "f32", ("n",), role="out"),
        Buffer("workspace", "u8", ("workspace_bytes",), role="workspace"),
    ),
    entry=Launcher(
        "guarded_launch",
        {
            "x": "x",
            "y": "y",
            "workspace": "workspace",
            "workspace_bytes": "bytes(workspace)",
            "n": "n",
            "scale": "scale",
            "swallow": "swallow",
        },
        struct="guarded_args",
    ),
    plan=Plan("guarded_plan_of", "guarded_plan", ("blocks", "rounds", "workspace_bytes")),
    intermediates=(Intermediate("held", "workspace", "u8", (16,)),),
    observe=lambda case, raw: {},
    reference=scaled,
    error_model=lambda case: {"y": exact(scaled(case)["y"])},
    directory=FOLDER,
)


def guarded_case(n: int = 100, **symbols: Any) -> Case:
    """A case with x = 0, 1, 2, ... and the plan that the launcher makes for it."""
    blocks = -(-n // 64)
    plan = {"blocks": blocks, "rounds": blocks, "workspace_bytes": 16 * blocks}
    arrays = {"x": np.arange(n, dtype=np.float32).view(np.uint32)}
    return Case(CONTRACT, "made", "counting", {"n": n, "scale": 2.0, "swallow": 0, **symbols}, plan, arrays)
