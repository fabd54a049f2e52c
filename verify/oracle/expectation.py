"""The expected results of a case: every compared quantity with its value and its derived bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from verify.contract.formats import encode, format_of
from verify.contract.model import Case
from verify.contract.returned import array
from verify.oracle.arithmetic import overflow_limit
from verify.oracle.tracked import Tracked, in_range


class OracleError(ValueError):
    """A contract's reference and error model contradict each other; the message names the quantity."""


@dataclass(frozen=True)
class Quantity:
    """One compared quantity of a case.

    value, bound: float64 arrays of one shape; an observed element is right if it is within ``bound`` of
    ``value`` (both NaN, or the same infinity, also agree). dtype: the element format of an output buffer,
    None for an invariant of intermediates. exact: bit equality is required and the bound is zero.
    """

    name: str
    value: np.ndarray
    bound: np.ndarray
    dtype: str | None = None
    exact: bool = False


def expect(case: Case) -> Mapping[str, Quantity]:
    """The reference and the derived bounds of a case, by quantity.

    Raises OracleError if the error model lacks a quantity of the reference, has a different shape, or its
    value is farther from the reference than its bound: then neither can be trusted to judge a kernel.
    """
    contract = case.contract
    with np.errstate(all="ignore"):
        reference = case.reference
        model = contract.error_model(case)
    for source, returned in (("reference", reference), ("error_model", model)):
        if not isinstance(returned, Mapping):
            kind = type(returned).__name__
            raise OracleError(f"{case.id}: {source}: must return a dict by quantity, returned {kind}")
    exact = {quantity for profile, quantity in contract.exact if profile == case.profile}
    dtypes = {b.name: case.dtype(b) for b in contract.buffers if b.role in ("out", "inout")}
    absent = {name for name in dtypes if not case.given(name)}
    expected = {}
    for name, given in reference.items():
        if name in absent:
            continue
        value = array(given, np.float64, f"{contract.file}: reference: {name}")
        if name not in model:
            raise OracleError(f"{case.id}: {name}: the error model does not return it")
        tracked = model[name]
        if not isinstance(tracked, Tracked):
            kind = type(tracked).__name__
            raise OracleError(
                f"{case.id}: error_model: {name}: must be a Tracked value (verify.oracle.tracked), is {kind}"
            )
        shapes = {"reference": value.shape, "error model": np.shape(tracked.value)}
        shapes["bound of the error model"] = np.shape(tracked.bound)
        wanted = _element_shape(case, name) if name in dtypes else value.shape
        for what, shape in shapes.items():
            if shape != wanted:
                raise OracleError(f"{case.id}: {name}: the {what} has the shape {shape}, must have {wanted}")
        value, bound = _stored(case, name, value, tracked, dtypes.get(name))
        if name in exact:
            bound = np.zeros_like(value)
        expected[name] = Quantity(name, value, bound, dtypes.get(name), name in exact)
    missing = [n for n in dtypes if n not in expected and n not in absent]
    if missing:
        raise OracleError(f"{case.id}: {missing[0]}: the reference does not return this output")
    return expected


def _element_shape(case: Case, name: str) -> tuple[int, ...]:
    """The shape of an output's elements; a packed format has several per storage item."""
    buffer = case.contract.buffer(name)
    shape = case.shape(buffer)
    packed = format_of(case.dtype(buffer)).packed
    return shape if packed == 1 else (*shape[:-1], shape[-1] * packed)


def _stored(
    case: Case, name: str, value: np.ndarray, model: Tracked, dtype: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """The reference within the range of the output's format, with the model's bound.

    Where the model's arithmetic overflows and the reference does not, the bound is infinite. Raises
    OracleError where the two differ by more than the bound.
    """
    modelled, bound = np.asarray(model.value, np.float64), np.asarray(model.bound, np.float64)
    limit = np.inf if dtype is None else overflow_limit(dtype)
    held = in_range(Tracked(value, np.where(np.isnan(bound), 0.0, bound)), limit)
    stored = in_range(Tracked(modelled, bound), limit).value
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(held.value)
        overflowed = finite & np.isinf(stored)
        bound = np.where(overflowed, np.inf, np.where(np.isnan(bound), bound, held.bound))
        apart = np.isnan(stored) != np.isnan(held.value)
        apart |= np.isinf(held.value) & (stored != held.value) & ~np.isinf(model.bound)
        apart |= finite & ~overflowed & (np.abs(stored - held.value) > bound)
        apart |= finite & ~(bound >= 0)
    if apart.any():
        at = tuple(int(i) for i in np.argwhere(apart)[0])
        raise OracleError(
            f"{case.id}: {name}{list(at)}: reference {value[at]:.9g} and error model {modelled[at]:.9g} "
            f"differ by more than the bound {model.bound[at]:.3g}"
        )
    return held.value, bound


def encoded(quantity: Quantity) -> np.ndarray:
    """The expected bits of an exact output buffer, as its storage array."""
    assert quantity.dtype is not None
    return encode(quantity.dtype, quantity.value).view(format_of(quantity.dtype).dtype)
