"""Faults of quantised matrix-vector products that a failing comparison is tested for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial

import numpy as np

from verify.contract.formats import FORMATS, round_to
from verify.contract.hypothesis import Hypothesis, Prediction
from verify.contract.model import Case
from verify.contracts.matvec.reference import Product, fp4_product, fp8_product

Seen = Mapping[str, np.ndarray]
Of = Callable[[Case], Product]
Change = Callable[[Case, Product], np.ndarray]
"""From the right op to what is added up: ``[B, N, K]``, before the tensor scale."""

_PROBED = 12
"""Elements of y that a family of faults is solved for."""

_NEAR = 0.1
"""How near to them, as a part of their distance from the reference, a member must come to be looked at."""

_SOLVED = 4
"""Members of a family that are looked at."""


class _Gives:
    """What a change gives for a case, computed when it is asked for."""

    def __init__(self, of: Of, change: Change, case: Case) -> None:
        self._of, self._change, self._case = of, change, case

    @cached_property
    def reference(self) -> Mapping[str, np.ndarray]:
        """y."""
        product = self._of(self._case)
        return {"y": (self._change(self._case, product).sum(-1) + 0.0) * product.factor}


def _says(of: Of, case: Case, says: str, change: Change) -> Prediction:
    return Prediction(says, _Gives(of, change, case), elsewhere=partial(_Gives, of, change))


def _terms(product: Product) -> np.ndarray:
    return product.x[:, None] * (product.weights * product.scales)[None]


def left_out(of: Of, case: Case, seen: Seen) -> Iterator[Prediction]:
    """Weights of a row that are not added: every so many, all from one on, or all before one.

    They are solved for from the sums over all such sets, in a few of the wrong elements.
    """
    product = of(case)
    y, right = seen["y"], np.asarray(case.reference["y"])
    with np.errstate(invalid="ignore"):
        moved = np.where(np.isfinite(y) & np.isfinite(right), np.abs(y - right), 0.0)
    at = np.unravel_index(np.argsort(-moved.ravel(), kind="stable")[:_PROBED], y.shape)
    lost = (right - y)[at]
    if not lost.any():
        return
    terms = product.x[at[0]] * (product.weights * product.scales)[at[1]] * product.factor
    depth = terms.shape[1]
    found: list[tuple[float, str, Callable[[np.ndarray], np.ndarray]]] = []
    size = 1
    while size < depth:
        for of_these in (2, 3, 4, 5, 6, 7, 8, 16):
            if size * (of_these - 1) >= depth:
                break
            padded = np.pad(terms, ((0, 0), (0, -depth % (size * of_these))))
            sums = padded.reshape(len(terms), -1, of_these, size).sum((1, 3))
            for which in range(of_these):
                if of_these > 2 and _power_of_2(of_these) and sums.shape[1] == 2:
                    continue
                words = f"weights k with k // {size} % {of_these} = {which} left out"
                found.append((_far(sums[:, which], lost), words, partial(_class, size, of_these, which)))
        size *= 2
    before = np.cumsum(terms, axis=1)
    ends = np.concatenate([np.zeros((len(terms), 1)), before], axis=1)
    for words, sums, keep in (
        ("from {} on", ends[:, -1:] - ends, _before),
        ("before {}", ends, _from),
    ):
        far = np.array([_far(sums[:, k], lost) for k in _candidates(sums, lost)])
        for k, distance in zip(_candidates(sums, lost), far, strict=True):
            if 0 < k < depth:
                found.append((float(distance), f"weights {words.format(k)} left out", partial(keep, int(k))))
    for distance, words, mask in sorted(found, key=lambda f: f[0])[:_SOLVED]:
        if distance <= _NEAR:
            yield _says(of, case, words, partial(_kept, mask))


def _power_of_2(n: int) -> bool:
    return n & (n - 1) == 0


def _candidates(sums: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Columns that come nearest, by the element that moved most."""
    return np.argsort(np.abs(sums - lost[:, None]).max(0), kind="stable")[:2]


def _far(sums: np.ndarray, lost: np.ndarray) -> float:
    """The largest distance of what would be lost from what is, as a part of it."""
    return float((np.abs(sums - lost) / np.maximum(np.abs(lost).max(), 1e-300)).max())


def _class(size: int, of_these: int, which: int, k: np.ndarray) -> np.ndarray:
    return k // size % of_these != which


def _before(end: int, k: np.ndarray) -> np.ndarray:
    return k < end


def _from(first: int, k: np.ndarray) -> np.ndarray:
    return k >= first


def _kept(mask: Callable[[np.ndarray], np.ndarray], case: Case, product: Product) -> np.ndarray:
    keep = mask(np.arange(product.x.shape[1]))
    return np.where(keep, _terms(product), 0.0)


def places(of: Of, case: Case, seen: Seen) -> Iterator[Prediction]:
    """Weights of a word that have lost their sign, or changed places."""
    of_word = {
        "the first four weights of each eight": lambda k: k % 8 < 4,
        "the last four weights of each eight": lambda k: k % 8 >= 4,
        "even weights": lambda k: k % 2 == 0,
        "odd weights": lambda k: k % 2 == 1,
        "all weights": lambda k: k >= 0,
    }
    for words, which in of_word.items():
        yield _says(of, case, f"the sign of {words} lost", partial(_unsigned, which))
        yield _says(of, case, f"the sign of {words} turned", partial(_turned, which))
        yield _says(of, case, f"{words} flushed to 0 where subnormal", partial(_flushed, which))
        for bit in (1, 2, 4):
            if words != "all weights" and not (bit == 4 or "four" in words or bit == 2):
                continue
            if "four" in words and bit == 4:
                continue
            name = (
                "nibbles swapped"
                if bit == 1 and words == "all weights"
                else f"{words} exchanged with k ^ {bit}"
            )
            yield _says(of, case, name, partial(_exchanged, which, bit))
    yield _says(of, case, "weights with the signs of their neighbours (k ^ 1)", _neighbours_signs)


Which = Callable[[np.ndarray], np.ndarray]


def _unsigned(which: Which, case: Case, product: Product) -> np.ndarray:
    k = np.arange(product.x.shape[1])
    weights = np.where(which(k), np.abs(product.weights), product.weights)
    return product.x[:, None] * (weights * product.scales)[None]


def _flushed(which: Which, case: Case, product: Product) -> np.ndarray:
    k = np.arange(product.x.shape[1])
    least = FORMATS[case.dtype(case.contract.buffer("weights"))].smallest_normal
    weights = np.where(which(k) & (np.abs(product.weights) < least), 0.0, product.weights)
    return product.x[:, None] * (weights * product.scales)[None]


def _turned(which: Which, case: Case, product: Product) -> np.ndarray:
    k = np.arange(product.x.shape[1])
    weights = np.where(which(k), -product.weights, product.weights)
    return product.x[:, None] * (weights * product.scales)[None]


def _exchanged(which: Which, bit: int, case: Case, product: Product) -> np.ndarray:
    k = np.arange(product.x.shape[1])
    other = np.where(which(k), k ^ bit, k)
    weights = product.weights[:, np.minimum(other, len(k) - 1)]
    return product.x[:, None] * (weights * product.scales)[None]


def _neighbours_signs(case: Case, product: Product) -> np.ndarray:
    k = np.arange(product.x.shape[1])
    signs = np.copysign(1.0, product.weights[:, np.minimum(k ^ 1, len(k) - 1)])
    return product.x[:, None] * (signs * np.abs(product.weights) * product.scales)[None]


def codes(of: Of, case: Case, seen: Seen) -> Iterator[Prediction]:
    """One magnitude decoded as another: the value is solved for in the element that moved most."""
    product = of(case)
    y, right = seen["y"], np.asarray(case.reference["y"])
    with np.errstate(invalid="ignore"):
        moved = np.where(np.isfinite(y) & np.isfinite(right), np.abs(y - right), 0.0)
    b, n = (int(i) for i in np.unravel_index(int(moved.argmax()), y.shape))
    if not moved[b, n]:
        return
    own = product.x[b] * product.scales[n] * product.factor
    for size in np.unique(np.abs(product.weights)):
        if not np.isfinite(size):
            continue
        signs = np.where(np.abs(product.weights[n]) == size, np.copysign(1.0, product.weights[n]), 0.0)
        for words, share in (("", signs), (" whatever its sign", np.abs(signs))):
            lever = float((own * share).sum())
            if lever == 0:
                continue
            value = float((y - right)[b, n] / lever) + size * (words == "")
            near = round(4 * value) / 4
            if abs(near - value) < 0.02 and near != size:
                yield _says(
                    of,
                    case,
                    f"weights of {size:g}{words} decoded as {near:g}",
                    partial(_decoded, size, near, words == ""),
                )
        plus = np.where((product.weights[n] == size) & ~np.signbit(product.weights[n]), 1.0, 0.0)
        lever = float((own * plus).sum())
        if lever:
            value = float((y - right)[b, n] / lever) + size
            near = round(4 * value) / 4
            if abs(near - value) < 0.02 and near != size:
                yield _says(
                    of, case, f"weights of +{size:g} decoded as {near:g}", partial(_decoded_plus, size, near)
                )


def _decoded(size: float, value: float, signed: bool, case: Case, product: Product) -> np.ndarray:
    sign = np.copysign(1.0, product.weights)
    new = sign * value if signed else product.weights + value
    weights = np.where(np.abs(product.weights) == size, new, product.weights)
    return product.x[:, None] * (weights * product.scales)[None]


def _decoded_plus(size: float, value: float, case: Case, product: Product) -> np.ndarray:
    which = (product.weights == size) & ~np.signbit(product.weights)
    return product.x[:, None] * (np.where(which, value, product.weights) * product.scales)[None]


def scales(of: Of, case: Case, seen: Seen) -> Iterator[Prediction]:
    """Groups that count with several scales, and the power of two of a group's activations left in."""
    group = case["group"]
    for groups in (2, 4, 8):
        if case["K"] // group >= groups:
            words = f"each weight counted with the scales of all {groups} groups about it"
            yield _says(of, case, words, partial(_with_all_scales, groups))
    yield _says(of, case, "the power of two of a group's activations not taken back", _power_left)
    yield _says(of, case, "the sums of groups in half precision", _half_sums)
    yield _says(of, case, "NaN scales taken for infinity", _infinite_scales)


def _with_all_scales(groups: int, case: Case, product: Product) -> np.ndarray:
    size = groups * case["group"]
    rows, depth = product.scales.shape
    own = np.pad(product.scales, ((0, 0), (0, -depth % size))).reshape(rows, -1, groups, case["group"])
    summed = np.broadcast_to(own.sum(2, keepdims=True), own.shape).reshape(rows, -1)[:, :depth]
    return product.x[:, None] * (product.weights * summed)[None]


def _power_left(case: Case, product: Product) -> np.ndarray:
    largest = np.abs(product.x.reshape(len(product.x), -1, case["group"])).max(-1)
    exponent = np.maximum(np.frexp(largest)[1] - 1, -112)
    lost = np.repeat(np.ldexp(1.0, -exponent), case["group"], axis=1)
    return _terms(product) * lost[:, None]


def _infinite_scales(case: Case, product: Product) -> np.ndarray:
    raw = product.x[:, None] * product.weights[None]
    sums = raw.reshape(*raw.shape[:2], -1, case["group"]).sum(-1)
    own = product.scales[None, :, :: case["group"]]
    return sums * np.where(np.isnan(own), np.inf, own)


def _half_sums(case: Case, product: Product) -> np.ndarray:
    raw = product.x[:, None] * product.weights[None]
    sums = raw.reshape(*raw.shape[:2], -1, case["group"]).sum(-1)
    return round_to("f16", sums / 4) * 4 * product.scales[None, :, :: case["group"]]


def _both(of: Of) -> tuple[Hypothesis, ...]:
    return (Hypothesis("left-out", partial(left_out, of)), Hypothesis("place", partial(places, of)))


FP4_HYPOTHESES = (
    *_both(fp4_product),
    Hypothesis("code", partial(codes, fp4_product)),
    Hypothesis("scale", partial(scales, fp4_product)),
)
FP8_HYPOTHESES = _both(fp8_product)
