"""Formats: a wrong table, a double rounding or a lost sign would make every reference and bound wrong."""

from __future__ import annotations

import numpy as np
import pytest

from verify.contract.formats import FORMATS, decode, encode, round_to

FLOATS = [name for name, fmt in FORMATS.items() if fmt.is_float]
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def all_codes(name: str) -> np.ndarray:
    """Every code of a format of at most 16 bits, in storage items; random bits of a wider one."""
    fmt = FORMATS[name]
    if fmt.itemsize <= 2:
        return np.arange(1 << (8 * fmt.itemsize)).astype(fmt.dtype)
    return np.random.default_rng(1).integers(0, 1 << (8 * fmt.itemsize), 20000, dtype=fmt.dtype)


@pytest.mark.parametrize("name", FLOATS)
def test_decode_then_encode_is_the_identity_on_every_code(name: str) -> None:
    """Fault: a table entry in the wrong place, a lost sign of zero, and nibbles that swap."""
    raw = all_codes(name)
    values = decode(name, raw)
    again = encode(name, values)
    expected_nan = np.isnan(values)
    finite = np.isfinite(values) if FORMATS[name].saturates else ~expected_nan
    if FORMATS[name].packed == 1:
        np.testing.assert_array_equal(again[finite], raw[finite])
        assert np.isnan(decode(name, again[expected_nan])).all()
    else:
        np.testing.assert_array_equal(again, raw)


@pytest.mark.parametrize("name", [n for n in FLOATS if n not in ("f64", "e8m0")])
def test_round_to_takes_the_nearest_value_and_ties_go_to_the_even_code(name: str) -> None:
    """Fault: truncation, round-half-up and double rounding through float32."""
    fmt = FORMATS[name]
    rng = np.random.default_rng(2)
    raw = all_codes(name)[:20000]
    values = decode(name, raw).ravel()
    values = np.unique(values[np.isfinite(values)])
    middle = (values[:-1] + values[1:]) / 2
    exact = (middle != values[:-1]) & (middle != values[1:]) & (fmt.itemsize <= 2)
    rounded = round_to(name, middle)
    if exact.any():
        codes = encode(name, np.repeat(rounded, fmt.packed) if fmt.packed > 1 else rounded)
        assert not (codes[exact] & 1).any()
    jitter = middle * (1 + rng.choice([-1, 1], middle.size) * 2.0**-50)
    near = round_to(name, jitter)
    step = np.abs(near - jitter)
    assert (step <= np.minimum(np.abs(values[:-1] - jitter), np.abs(values[1:] - jitter))).all()


def test_known_values() -> None:
    """Fault: a bias that is off by one: values from the published format definitions."""
    assert decode("e2m1x2", np.array([0x10, 0x32, 0x54, 0x76], np.uint8)).tolist() == E2M1
    assert decode("e2m1x2", np.array([0xF9], np.uint8)).tolist() == [-0.5, -6.0]
    assert decode("e4m3", np.array([0x7E, 0x08, 0x01, 0xFE], np.uint8)).tolist() == [448, 2**-6, 2**-9, -448]
    assert np.isnan(decode("e4m3", np.array([0x7F, 0xFF], np.uint8))).all()
    assert decode("e5m2", np.array([0x7B, 0x7C, 0x01], np.uint8)).tolist() == [57344, np.inf, 2**-16]
    assert decode("e8m0", np.array([0, 127, 254], np.uint8)).tolist() == [2.0**-127, 1.0, 2.0**127]
    assert np.isnan(decode("e8m0", np.array([255], np.uint8))).all()
    assert decode("bf16", np.array([0x3F80, 0x7F7F], np.uint16)).tolist() == [1.0, 255 * 2.0**120]
    maxima = {"bf16": 255 * 2.0**120, "f16": 65504.0, "e4m3": 448.0, "e5m2": 57344.0, "e2m1x2": 6.0}
    assert {n: FORMATS[n].max_finite for n in maxima} == maxima
    subnormals = {"bf16": 2.0**-133, "f16": 2.0**-24, "f32": 2.0**-149, "e4m3": 2.0**-9, "e2m1x2": 0.5}
    assert {n: FORMATS[n].smallest_subnormal for n in subnormals} == subnormals
    assert FORMATS["bf16"].unit_roundoff == 2.0**-8
    assert FORMATS["f32"].unit_roundoff == 2.0**-24


def test_overflow_and_special_values() -> None:
    """Fault: a saturating format that yields infinity, and an IEEE one that saturates."""
    big = np.array([1e39, -1e39, np.inf, np.nan])
    np.testing.assert_array_equal(round_to("bf16", big), [np.inf, -np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(round_to("e4m3", big), [448, -448, 448, np.nan])
    np.testing.assert_array_equal(round_to("e2m1x2", big), [6, -6, 6, 6])
    np.testing.assert_array_equal(round_to("e8m0", np.array([1e-60, 1.4, 1.6])), [2.0**-127, 1, 2])
    assert round_to("f16", np.array(65519.9)) == 65504
    assert np.isinf(round_to("f16", np.array(65520.0)))
    with pytest.raises(ValueError, match="powers of two"):
        encode("e8m0", np.array([0.0]))
    np.testing.assert_array_equal(encode("i8", np.array([-1e9, 2.5, 1e9])), [-128, 2, 127])
    np.testing.assert_array_equal(encode("i64", np.array([9.3e18])), [2**63 - 1])


@pytest.mark.parametrize("name", FORMATS)
def test_fill_patterns_match_their_names(name: str) -> None:
    """Fault: a poison that is no poison: a NaN fill that decodes to a number."""
    fmt = FORMATS[name]
    for kind in ("nan", "inf", "huge", "zero"):
        value = decode(name, np.array([fmt.pattern(kind)], np.uint64).astype(fmt.dtype))
        if kind == "nan" and fmt.quiet_nan is not None:
            assert np.isnan(value).all()
        elif kind == "inf" and fmt.infinity is not None:
            assert np.isinf(value).all()
        elif kind == "zero":
            assert (value == (2.0**-127 if name == "e8m0" else 0)).all()
        else:
            assert (value == fmt.max_finite).all()
