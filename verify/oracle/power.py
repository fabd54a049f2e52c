"""Power: could the comparison of a fixture have failed at all?

A bound that is infinite, or as large as the result itself, passes every kernel. So the expected results are
compared with wrong results that a faulty kernel would give: every element halved (zeroing moves it even
farther), and the reference recomputed with one position of an input dropped. Each must exceed its bound in
some profile of the fixture. Individual results may be near zero, where halving shows nothing; but no
element's bound may rival the largest result of its quantity in every profile. Elements that must be zero do
not count. If all elements of an input are equal in every profile, the comparison cannot show which of them a
kernel reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from verify.contract.formats import FORMATS, format_of
from verify.contract.model import Case
from verify.oracle.expectation import Quantity
from verify.oracle.visibility import unit_of

Expected = Mapping[str, Quantity]

LEAST_SHARE = 0.1
"""Share of an output's elements that some profile must be able to judge: a few may be near zero."""

SLICE = 64
"""A row, column or other slice of at least this many elements must have one that some profile can judge."""

COARSE = 1 / 16
"""A bound below this fraction of the result is not the reason why a dropped position goes unnoticed."""

_REMEDY = "tighten error_model, or add a profile in which the result stands out"


@dataclass
class _Judged:
    """What all profiles together can show for each element of one output."""

    promised: np.ndarray
    counted: np.ndarray
    detectable: np.ndarray
    bounded: np.ndarray
    finite: np.ndarray
    narrow: np.ndarray


def powerless(
    cases: Sequence[Case], expected: Sequence[Expected], never: frozenset[str], flat: frozenset[str]
) -> str:
    """Why the comparison of a fixture's cases proves nothing about some output; empty if it has power.

    expected: the expected results of each case. never: outputs of which no fixture promises an element.
    flat: inputs whose elements are all equal in every case of every fixture.
    """
    nothing = unpromised(cases)
    for name in sorted(nothing if nothing == _sized(cases) else never):
        return f"compare has no power over {name}: promised= selects no element of it in any profile"
    for name in sorted(_sized(cases) - nothing):
        masks = [_promised(case, name, given[name].value.shape) for case, given in _both(cases, expected)]
        if why := _halved_undetected(name, masks, [given[name] for given in expected]):
            return f"compare has no power over {name}: {why}"
    exact = any(quantity.exact for given in expected for quantity in given.values())
    for name in sorted(() if exact else flat):
        return (
            f"compare has no power over {name}: all of its elements are equal in every profile, so a kernel "
            "that reads the wrong ones is not detected: add a profile in which they differ"
        )
    return _blind_to_inputs(cases, expected)


def unpromised(cases: Sequence[Case]) -> frozenset[str]:
    """Non-empty outputs of which no case promises an element."""
    return frozenset(n for n in _sized(cases) if not any(_written(case, n).any() for case in cases))


def flat_inputs(cases: Sequence[Case]) -> frozenset[str]:
    """Floating-point inputs of several elements that are all equal in every case."""
    flat = set()
    for buffer in cases[0].contract.buffers if cases else ():
        if buffer.role not in ("in", "inout") or not FORMATS[cases[0].dtype(buffer)].is_float:
            continue
        several = [case for case in cases if case.live(buffer.name).sum() > 1]
        several.sort(key=lambda case: case.arrays[buffer.name].size)
        if several and not any(_differs(case, buffer.name) for case in several):
            flat.add(buffer.name)
    return frozenset(flat)


def _differs(case: Case, name: str) -> bool:
    alive = case.arrays[name][case.live(name)]
    return bool((alive != alive[:1]).any())


def _sized(cases: Sequence[Case]) -> frozenset[str]:
    """Outputs that are not empty in some case."""
    outputs = [b for b in cases[0].contract.buffers if b.role in ("out", "inout")]
    return frozenset(
        b.name for b in outputs for case in cases if case.given(b.name) and min(case.shape(b), default=1) > 0
    )


def _both(cases: Sequence[Case], expected: Sequence[Expected]) -> Iterator[tuple[Case, Expected]]:
    return zip(cases, expected, strict=True)


def _written(case: Case, name: str) -> np.ndarray:
    return case.mask(case.contract.buffer(name), "promised")


def _promised(case: Case, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The mask of promised elements; a packed format has several per storage item."""
    mask = _written(case, name)
    return mask if mask.shape == shape else np.repeat(mask, shape[-1] // mask.shape[-1], axis=-1)


def _halved_undetected(name: str, masks: Sequence[np.ndarray], quantities: Sequence[Quantity]) -> str:
    """Why halved results would stay within their bounds; empty if they would not."""
    if any(mask.shape != masks[0].shape for mask in masks):
        return ""
    judged = _judge(masks, quantities)
    unbounded = judged.promised & judged.finite & ~judged.bounded
    if unbounded.any():
        return f"{_first(name, unbounded)} is infinite or NaN in every profile: {_REMEDY}"
    undefined = judged.promised & ~judged.finite
    if undefined.sum() > judged.promised.sum() / 2:
        of = f"{int(undefined.sum())} elements ({_first(name, undefined, '')})"
        return f"the reference of {of} is not finite in any profile"
    counted = judged.counted
    detectable = judged.detectable & counted
    if detectable.sum() < LEAST_SHARE * counted.sum():
        at = tuple(int(i) for i in np.argwhere(counted & ~detectable)[0])
        shown = max(quantities, key=lambda quantity: abs(np.nan_to_num(quantity.value[at])))
        return (
            "a zeroed or halved result stays within the bound in every profile for "
            f"{int(counted.sum() - detectable.sum())} of {int(counted.sum())} elements; {name}{list(at)} is "
            f"{shown.value[at]:.6g} within {shown.bound[at]:.3g}: {_REMEDY}"
        )
    for axis in range(counted.ndim):
        others = tuple(a for a in range(counted.ndim) if a != axis)
        blind = (counted.sum(others) >= SLICE) & (detectable.sum(others) == 0)
        if blind.any():
            where = ["all"] * counted.ndim
            where[axis] = str(int(np.argmax(blind)))
            return (
                f"a zeroed or halved result stays within the bound in every profile for all of "
                f"{name}[{', '.join(where)}]: {_REMEDY}"
            )
    wide = judged.promised & judged.bounded & ~judged.narrow
    if wide.any() and judged.narrow.any():
        return f"{_first(name, wide)} is half the largest result or more, in every profile: {_REMEDY}"
    return ""


def _judge(masks: Sequence[np.ndarray], quantities: Sequence[Quantity]) -> _Judged:
    shape = masks[0].shape
    judged = _Judged(*(np.zeros(shape, bool) for _ in range(6)))
    for mask, quantity in zip(masks, quantities, strict=True):
        finite = np.isfinite(quantity.value)
        size = np.abs(np.where(finite, quantity.value, 0.0))
        bounded = finite & np.isfinite(quantity.bound)
        detectable = mask & bounded & (size / 2 > np.where(bounded, unit_of(quantity), np.inf))
        judged.promised |= mask
        judged.detectable |= detectable
        judged.counted |= mask & ((size > _negligible(quantity)) | detectable)
        judged.bounded |= mask & bounded
        judged.finite |= mask & finite
        judged.narrow |= mask & bounded & (unit_of(quantity) < size[mask].max(initial=0.0) / 2)
    return judged


def _negligible(quantity: Quantity) -> float:
    """Results up to this size may be flushed to zero or lose precision."""
    if quantity.dtype is None or not format_of(quantity.dtype).is_float:
        return 0.0
    return 4 * format_of(quantity.dtype).smallest_normal


def _first(name: str, mask: np.ndarray, what: str = "the bound of ") -> str:
    return f"{what}{name}{[int(i) for i in np.argwhere(mask)[0]]}"


def _blind_to_inputs(cases: Sequence[Case], expected: Sequence[Expected]) -> str:
    """Why dropping any position of some input goes unnoticed although the reference changes; or empty."""
    for buffer in cases[0].contract.buffers:
        if buffer.role not in ("in", "inout") or not FORMATS[cases[0].dtype(buffer)].is_float:
            continue
        if not cases[0].given(buffer.name):
            continue
        shape = cases[0].shape(buffer)
        for axis in (a for a, extent in enumerate(shape) if extent > 1):
            if (why := _blind_along(buffer.name, axis, cases, expected)) is not None:
                return why
    return ""


def _blind_along(name: str, axis: int, cases: Sequence[Case], expected: Sequence[Expected]) -> str | None:
    """The reason why a dropped position along this axis is not detected; None if it is, or changes little."""
    hidden: str | None = None
    for case, given in _both(cases, expected):
        for position, changed in _dropped(case, name, axis):
            try:
                with np.errstate(all="ignore"):
                    moved = changed.contract.reference(changed)
            except Exception:  # a reference may reject such data, which proves nothing about the bounds
                return None
            shown, coarse = _seen(given, moved)
            if shown:
                return None
            if coarse:
                hidden = (
                    f"compare has no power over {name}: every result stays within its bound in every profile "
                    f"when one of its positions (index {position} of axis {axis}, say) is dropped: {_REMEDY}"
                )
    return hidden


def _dropped(case: Case, name: str, axis: int) -> Iterator[tuple[int, Case]]:
    """The case with the first, middle or last live position along an axis set to zero, each in turn."""
    array = case.arrays[name]
    live = case.live(name).any(axis=tuple(a for a in range(array.ndim) if a != axis))
    positions = np.flatnonzero(live)
    if not positions.size:
        return
    for number in dict.fromkeys((0, positions.size // 2, positions.size - 1)):
        position = int(positions[number])
        changed = array.copy()
        changed[(slice(None),) * axis + (position,)] = 0
        yield position, replace(case, arrays={**case.arrays, name: changed})


def _seen(given: Expected, moved: Mapping[str, np.ndarray]) -> tuple[bool, bool]:
    """Whether some result exceeds its bound, and whether one changed whose bound is coarse."""
    coarse = False
    for name, quantity in given.items():
        new = np.asarray(moved[name], np.float64)
        with np.errstate(invalid="ignore"):
            distance = np.abs(new - quantity.value)
            unit = unit_of(quantity)
            if ((distance > unit) | (np.isfinite(new) != np.isfinite(quantity.value))).any():
                return True, coarse
            apart = distance > 1e-9 * np.abs(quantity.value)
        if apart.any():
            size = np.maximum(np.abs(quantity.value[apart]), np.finfo(np.float64).tiny)
            coarse |= bool(np.median(unit[apart] / size) > COARSE)
    return False, coarse
