"""Validates what a contract's functions return, with one-line errors that name the function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class ReturnedError(ValueError):
    """A contract's function returned a wrong value; the message names the field and the value."""


def array(value: Any, dtype: Any, at: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """A returned value as an array, broadcast to ``shape`` if given. Raises ReturnedError.

    dtype: the array's; None keeps the value's own, which may be any numeric type.
    """
    try:
        made = np.asarray(value, dtype)
    except (TypeError, ValueError):
        made = None
    if value is None or made is None or made.dtype.kind not in "biuf":
        raise ReturnedError(f"{at}: must return numbers, returned {_shown(value)}")
    if shape is None:
        return made
    try:
        return np.broadcast_to(made, shape)
    except ValueError:
        raise ReturnedError(
            f"{at}: returned the shape {made.shape}, which does not broadcast to {shape}"
        ) from None


def mapping(value: Any, at: str) -> Mapping[str, Any]:
    """A returned value as a mapping. Raises ReturnedError."""
    if not isinstance(value, Mapping):
        raise ReturnedError(f"{at}: must return a dict by name, returned {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"a value of type {type(value).__name__}"
