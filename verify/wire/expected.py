"""The file of allowed intervals that the harness's ``judge`` command reads: the bounds, element by element.

Lines ``verify-expected 1``, ``case ID``, then for each output ``quantity BUFFER element BYTES encoding
sign|integer|unsigned largest MAGNITUDE count N``, and ``payload``; then for each quantity N lows and N highs
(int64, little-endian) in the order of the promised elements' bytes. Intervals are over ordered integers: an
element's bits, with the magnitude negated if the sign is set. A low above its high means an expected NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from verify.contract.formats import Format, decode, encode, format_of
from verify.contract.model import Case
from verify.oracle.expectation import Quantity
from verify.wire.pack import promised_mask
from verify.wire.spans import spans_of

_NAN = (np.iinfo(np.int64).max, np.iinfo(np.int64).min)


def expected_bytes(case: Case, expected: Mapping[str, Quantity]) -> bytes:
    """The file for a case's outputs, without outputs in packed formats and without intermediates."""
    header = ["verify-expected 1", f"case {case.id}"]
    payload = []
    for buffer in case.contract.buffers:
        fmt = format_of(case.dtype(buffer))
        if buffer.name not in expected or fmt.packed > 1:
            continue
        low, high = interval_keys(expected[buffer.name], case.dtype(buffer))
        spans = spans_of(promised_mask(case, buffer), case.strides(buffer), fmt.itemsize)
        payload += [
            spans.gather(low.reshape(case.shape(buffer))),
            spans.gather(high.reshape(case.shape(buffer))),
        ]
        header.append(
            f"quantity {buffer.name} element {fmt.itemsize} encoding {_encoding(fmt)} "
            f"largest {fmt.top if fmt.infinity is None else fmt.infinity} count {spans.size // fmt.itemsize}"
        )
    return "\n".join([*header, "payload\n"]).encode() + b"".join(payload)


def interval_keys(quantity: Quantity, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest element within a quantity's bound, as ordered int64."""
    value, bound = quantity.value, np.where(np.isnan(quantity.bound), 0.0, quantity.bound)
    if quantity.exact:
        bound = np.zeros_like(bound)
    nan = np.isnan(value)
    with np.errstate(invalid="ignore"):
        # An infinity with an infinite bound allows every value.
        settled = nan | (np.isinf(value) & np.isfinite(bound))
        loose = np.where(np.isinf(value), 0.0, value)
        reach = [np.where(settled, np.where(nan, 0.0, value), loose + s * bound) for s in (-1, 1)]
    low, high = (ordered_keys(dtype, encode(dtype, x)) for x in reach)
    got = [np.asarray(decode(dtype, encode(dtype, x)), np.float64) for x in reach]
    # Rounding to nearest may have stepped outside the interval.
    low = np.where(got[0] < reach[0], low + 1, low)
    high = np.where(got[1] > reach[1], high - 1, high)
    return np.where(nan, _NAN[0], low), np.where(nan, _NAN[1], high)


def ordered_keys(dtype: str, raw: np.ndarray) -> np.ndarray:
    """Bits as integers in the order of the values; both zeros are 0."""
    fmt = format_of(dtype)
    if _encoding(fmt) != "sign":
        return raw.astype(np.int64)
    bits = raw.astype(np.uint64)
    sign = np.uint64(1 << (fmt.bits - 1))
    magnitude = (bits & (sign - np.uint64(1))).astype(np.int64)
    return np.where(bits & sign, -magnitude, magnitude)


def _encoding(fmt: Format) -> str:
    if fmt.is_float and fmt.signed:
        return "sign"
    return "integer" if fmt.signed else "unsigned"
