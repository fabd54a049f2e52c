"""A small op with two inputs, a scale and a row length, and runs of it that are made in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from verify.contract.entries import Launcher
from verify.contract.formats import encode, round_to
from verify.contract.hypothesis import Hypothesis
from verify.contract.model import Buffer, Case, Contract
from verify.contract.symbols import Symbol
from verify.diagnosis.evidence import Evidence
from verify.oracle import tracked as t
from verify.oracle.expectation import expect

ROWS, COLUMNS = 6, 16


def reference(case: Case) -> dict[str, np.ndarray]:
    return {"y": _dot(case.f64("w"), case.f64("x"), case.f64("s"), int(case["length"]), case["scale"])}


def _dot(w: np.ndarray, x: np.ndarray, s: np.ndarray, length: int, scale: float) -> np.ndarray:
    return scale * s * (w[:, :length] * x[:length]).sum(-1)


def error_model(case: Case) -> dict[str, t.Tracked]:
    length = int(case["length"])
    products = (
        t.exact(case.f64("w")[:, :length])
        * t.exact(np.broadcast_to(case.f64("x"), (ROWS, COLUMNS)))[:, :length]
    )
    y = t.total(products, -1) * t.exact(case.f64("s")) * float(case["scale"])
    return {"y": t.round_result(y, "f32")}


def contract(*hypotheses: Hypothesis) -> Contract:
    return Contract(
        name="weighted",
        source="weighted.cu",
        symbols=("rows", "columns", Symbol("length", minimum=0), Symbol("scale", "float", default=1.0)),
        buffers=(
            Buffer("w", "f32", ("rows", "columns"), strides=("columns + 4", 1)),
            Buffer("x", "f32", ("columns",)),
            Buffer("s", "f32", ("rows",)),
            Buffer("y", "f32", ("rows",), "out"),
        ),
        entry=Launcher("weighted_launch", ("w", "x", "s", "y", "stream")),
        reference=reference,
        error_model=error_model,
        hypotheses=hypotheses,
    )


def case_of(profile: str, seed: int, made: Contract) -> Case:
    rng = np.random.default_rng(seed)
    values = {"w": (ROWS, COLUMNS), "x": (COLUMNS,), "s": (ROWS,)}
    arrays = {name: encode("f32", rng.standard_normal(shape)) for name, shape in values.items()}
    symbols = {"rows": ROWS, "columns": COLUMNS, "length": 13, "scale": 0.3}
    return Case(made, "f", profile, symbols, {}, arrays)


Kernel = Callable[..., np.ndarray]
"""From w, x, s, the length and the scale to y."""


def right(w: np.ndarray, x: np.ndarray, s: np.ndarray, length: int, scale: float) -> np.ndarray:
    return _dot(w, x, s, length, scale)


def runs(kernel: Kernel, *hypotheses: Hypothesis, seeds: Sequence[int] = (1, 2)) -> list[Evidence]:
    """What a kernel gives, from float64 inputs to its result, which is stored as fp32."""
    made = contract(*hypotheses)
    found = []
    for seed in seeds:
        case = case_of(f"p{seed}", seed, made)
        given = kernel(*(case.f64(n).copy() for n in "wxs"), int(case["length"]), float(case["scale"]))
        found.append(Evidence(case, expect(case), {"y": round_to("f32", given)}))
    return found
