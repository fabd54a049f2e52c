"""Holds the CPU device's answers against the hardware's, form by form."""

from __future__ import annotations

import numpy as np

from .forms import Form, width_of
from .warp_forms import Mma
from .wmma_forms import Wmma

# A sum of products on tensor cores: largest difference as a part of the largest magnitude that the sum can
# pass through, by the type of the operands. Measured on the H200 and rounded up; the order and the width of
# its partial sums are not documented.
MMA_BOUNDS = {"f16": 2.0**-26, "bf16": 2.0**-26, "tf32": 2.0**-25, "e4m3": 2.0**-24, "e5m2": 2.0**-24}
# The same of sums in f16 that are rounded on their way, and of the four products of m8n8k4.
HALF_BOUND, QUAD_BOUND = 2.0**-11, 2.0**-25
_ELEMENT = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def _floats(raw: bytes, type_name: str) -> tuple[np.ndarray, float]:
    """Values in float64 and the size of one unit in the last place relative to the value."""
    if type_name == "f32":
        return np.frombuffer(raw, np.float32).astype(np.float64), 2.0**-23
    if type_name == "f64":
        return np.frombuffer(raw, np.float64), 2.0**-20  # the f64 approximations give the upper word
    if type_name in ("f16", "f16x2"):
        return np.frombuffer(raw, np.float16).astype(np.float64), 2.0**-10
    bits = np.frombuffer(raw, np.uint16).astype(np.uint32) << 16
    return bits.view(np.float32).astype(np.float64), 2.0**-7


def difference(form: Form, hardware: bytes, machine: bytes) -> tuple[float, str]:
    """Largest difference in units of the tolerance (0 equal, above 1 too far), and the place of the worst.

    Without a tolerance any different bit counts as infinite. With one, NaN, infinities, zeros and every
    sign are exact all the same: an approximation that loses them is wrong.
    """
    if hardware == machine:
        return 0.0, ""
    element = np.uint16 if form.d in ("f16x2", "bf16x2") else _ELEMENT[width_of(form.d)]
    a, b = np.frombuffer(hardware, element), np.frombuffer(machine, element)
    if form.tolerance is None:
        k = int(np.flatnonzero(a != b)[0])
        return float(
            "inf"
        ), f"element {k}: hardware {a[k]:#x}, machine {b[k]:#x}, {int((a != b).sum())} differ"
    ulps, absolute = form.tolerance
    x, unit = _floats(hardware, form.d)
    y, _ = _floats(machine, form.d)
    with np.errstate(invalid="ignore"):
        bound = ulps * unit * np.maximum(np.abs(x), np.abs(y)) + absolute
        tiny = {"f32": 2.0**-149, "f64": 2.0**-1074, "f16": 2.0**-24, "f16x2": 2.0**-24}.get(
            form.d, 2.0**-133
        )
        apart = np.abs(x - y) / (bound + ulps * tiny)
    special = ~np.isfinite(x) | ~np.isfinite(y) | (x == 0) | (y == 0) | (np.signbit(x) != np.signbit(y))
    apart = np.where(a == b, 0.0, np.where(special, np.inf, apart))
    k = int(np.argmax(apart))
    return float(apart[k]), f"element {k}: hardware {x[k]!r}, machine {y[k]!r}"


def mma_difference(op: Mma | Wmma, hardware: bytes, machine: bytes) -> float:
    """Largest difference in units of the bound; integers, f64 and most f16 sums must agree bit for bit."""
    if hardware == machine:
        return 0.0
    short = op.d == "f16" and (op.a in ("e4m3", "e5m2") or op.shape == "m8n8k4")
    if (op.d != "f32" and not short) or (isinstance(op, Wmma) and op.load):
        return float("inf")
    kind = np.float16 if short else np.float32
    x = np.frombuffer(hardware, kind).astype(np.float64)
    y = np.frombuffer(machine, kind).astype(np.float64)
    if not (np.isfinite(x) & np.isfinite(y)).all():
        return float("inf")
    depth = int(op.shape.split("k")[1])
    scale = (
        4.0 * depth + 2.0
    )  # operands are below 2 in magnitude (see moderate), or 1.75 * 8 in the 8-bit formats
    if op.a in ("e4m3", "e5m2"):
        scale = float(np.abs(x).max()) * 2
    part = HALF_BOUND if short else QUAD_BOUND if op.shape == "m8n8k4" else MMA_BOUNDS[op.a]
    return float(np.abs(x - y).max()) / (scale * part)
