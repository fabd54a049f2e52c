"""Fills in terms of a buffer's format: element patterns, chosen by a hash of the element's index."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from verify.contract.formats import encode, format_of
from verify.wire.run import FILLS, Fill

STALE_PATTERNS = 64
"""Number of plausible values; the harness picks one by a hash of the element's index."""


@lru_cache(maxsize=64)
def fill_table(dtype: str, fill: Fill) -> bytes:
    """Storage items of a fill, concatenated; only ``stale`` has more than one.

    Raises KeyError for an unknown dtype.
    """
    fmt = format_of(dtype)
    if fill != "stale":
        return (fmt.pattern(fill)).to_bytes(fmt.itemsize, "little")
    generator = np.random.default_rng(20240716)
    if not fmt.is_float:
        values: np.ndarray = generator.integers(0, 8, STALE_PATTERNS)
    elif not fmt.signed:
        values = np.exp2(generator.integers(-3, 4, STALE_PATTERNS).astype(np.float64))
    else:
        values = generator.standard_normal(STALE_PATTERNS * fmt.packed)
    return encode(dtype, values).astype(fmt.dtype).tobytes()


def fill_tables(dtype: str) -> dict[Fill, bytes]:
    """All fills of an element type."""
    return {fill: fill_table(dtype, fill) for fill in FILLS}
