"""One run's outputs as evidence for or against what a hypothesis predicts, in bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from verify.contract.formats import FORMATS, round_to
from verify.contract.hypothesis import Prediction
from verify.contract.model import Case
from verify.oracle.expectation import OracleError, Quantity, expect

PROBED = 96
"""Wrong elements that a prediction must come near to before the whole of it is looked at."""

_NEAR = 0.25
"""How near, as a part of the distance from the reference."""

_GROWTH = 4.0
"""Bounds of the right result that values without bounds of their own may be off by."""

_FLOOR = 2.0**-18
"""Error that such values may have, relative to their row's largest or the median of all: they were not
tracked through the kernel's roundings."""


@dataclass(frozen=True)
class Evidence:
    """The outputs of one run.

    masks: by quantity, the judged elements. before: the right answer to the preceding call, if there was one.
    """

    case: Case
    expected: Mapping[str, Quantity]
    seen: Mapping[str, np.ndarray]
    masks: Mapping[str, np.ndarray] = field(default_factory=dict)
    before: Mapping[str, np.ndarray] | None = None

    @cached_property
    def wrong(self) -> dict[str, np.ndarray]:
        """By quantity, the judged elements that are outside their bound."""
        return {
            name: ~_agrees(self.seen[name], _stored(q), q.bound) & self.masks.get(name, True)
            for name, q in self.expected.items()
        }

    @property
    def fails(self) -> bool:
        """Whether any element is wrong."""
        return any(mask.any() for mask in self.wrong.values())

    @property
    def wrong_elements(self) -> int:
        """How many elements are wrong and numbers."""
        return sum(int((mask & np.isfinite(self.seen[name])).sum()) for name, mask in self.wrong.items())

    @cached_property
    def _probe(self) -> dict[str, tuple[np.ndarray, ...]]:
        """By quantity, indices of the elements that are most wrong, finite ones first."""
        found = {}
        for name, wrong in self.wrong.items():
            if wrong.any():
                quantity, seen = self.expected[name], self.seen[name]
                with np.errstate(all="ignore"):
                    excess = np.abs(seen - quantity.value) / np.maximum(quantity.bound, 1e-300)
                excess = np.where(wrong, np.where(np.isfinite(excess), excess, 0.0), -1.0).ravel()
                order = np.argsort(-excess, kind="stable")[: min(PROBED, int(wrong.sum()))]
                found[name] = np.unravel_index(order, wrong.shape)
        return found

    def near(self, values: Mapping[str, np.ndarray]) -> bool:
        """Whether a prediction comes near to what is most wrong. A quick no for most of them."""
        for name, at in self._probe.items():
            if name not in values or np.shape(values[name]) != self.seen[name].shape:
                return False
            seen, there = self.seen[name][at], np.asarray(values[name], np.float64)[at]
            with np.errstate(invalid="ignore"):
                distance = np.abs(seen - self.expected[name].value[at])
                rounding = 1.01 * _unit(self.expected[name]) * np.abs(there)
                close = np.abs(seen - there) <= np.maximum(_NEAR * distance, rounding)
            same = (np.isnan(seen) & np.isnan(there)) | (seen == there)
            lost = np.isfinite(seen) & np.isfinite(there) & ~np.isfinite(distance)
            if not (close | same | lost).all():
                return False
        return bool(self._probe)

    def bits(self, prediction: Prediction) -> tuple[float, float]:
        """How much the run says for a prediction: minus infinity where any judged element contradicts it.

        A wrong element that the prediction meets is worth the logarithm of how many tolerances the reference
        is away from it; a NaN nothing, for any leak of NaN into a row looks alike. The second number is of
        quantities where NaN stand in some elements and not in others, as predicted.
        """
        given, values = prediction.gives, prediction.values
        if self.fails and not self.near(values):
            return -np.inf, 0.0
        bounds = self._own_bounds(given) if isinstance(given, Case) else self._borrowed_bounds(values)
        total, patterns = 0.0, 0.0
        for name, quantity in self.expected.items():
            value = np.asarray(values.get(name, quantity.value), np.float64)
            seen, wrong = self.seen[name], self.wrong[name]
            bound = bounds.get(name, quantity.bound)
            if quantity.exact:
                bound = np.maximum(
                    bound, 1.01 * _unit(quantity) * np.where(np.isfinite(value), np.abs(value), 0)
                )
            if value.shape != seen.shape:
                return -np.inf, 0.0
            if (~_agrees(seen, value, bound) & self.masks.get(name, True)).any():
                return -np.inf, 0.0
            if wrong.any():
                v, reference = value[wrong], quantity.value[wrong]
                tolerance = np.maximum(bound[wrong], np.ldexp(np.abs(v), -45) + 1e-300)
                with np.errstate(all="ignore"):
                    numeric = np.log2(np.abs(v - reference) / (2 * tolerance))
                    unlike = np.where(v == 0, 1.0, np.log2(np.abs(v) / tolerance))
                numeric = np.where(np.isfinite(reference), numeric, unlike)
                numeric = np.clip(np.where(np.isfinite(v), numeric, np.where(np.isinf(v), 1.0, 0.0)), 0, 24)
                total += float(numeric.sum())
                patterns += bool(np.isnan(v).any() and not np.isnan(seen).all())
        return total, patterns

    def _own_bounds(self, case: Case) -> dict[str, np.ndarray]:
        try:
            return {name: quantity.bound for name, quantity in expect(case).items()}
        except OracleError:
            return {}

    def _borrowed_bounds(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Of values that come without: those of the right result, as many times larger as the values are."""
        found = {}
        for name, quantity in self.expected.items():
            if name not in values:
                continue
            value = np.asarray(values[name], np.float64)
            sizes = [_size(x) for x in (value, quantity.value)]
            growth = max(1.0, sizes[0] / sizes[1]) if sizes[1] > 0 else 1.0
            unit = _unit(quantity)
            bound = np.where(np.isfinite(quantity.bound), quantity.bound, 0.0)
            if not quantity.exact:
                bound = np.where(bound == 0, bound.max(initial=0.0), bound)
            with np.errstate(invalid="ignore"):
                relative = 2.0**-45 if quantity.exact and unit == 0.0 else _FLOOR
                size = np.maximum(np.abs(value), sizes[0])
                if value.ndim > 1 and not quantity.exact:
                    size = np.maximum(
                        size, np.where(np.isfinite(value), np.abs(value), 0.0).max(-1, keepdims=True)
                    )
                own = unit * np.abs(value) + relative * size
            found[name] = _GROWTH * growth * bound + np.where(np.isfinite(own), own, 0.0)
        return found


def _unit(quantity: Quantity) -> float:
    """Unit roundoff of the format that a quantity is stored in; 0 for an intermediate one."""
    return FORMATS[quantity.dtype].unit_roundoff if quantity.dtype is not None else 0.0


def _stored(quantity: Quantity) -> np.ndarray:
    """The value that a right kernel leaves: of an exact quantity, as its format holds it."""
    exact = quantity.exact and quantity.dtype is not None and FORMATS[quantity.dtype].is_float
    return round_to(str(quantity.dtype), quantity.value) if exact else quantity.value


def _size(values: np.ndarray) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(np.median(finite)) if finite.size else 0.0


def _agrees(seen: np.ndarray, value: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """As verify.check.judge: both NaN, the same infinity, or within the bound."""
    with np.errstate(invalid="ignore"):
        near = np.abs(seen - value) <= bound
    return near | (np.isnan(seen) & np.isnan(value)) | (np.isinf(seen) & (seen == value))
