"""Expressions come from files: each test would catch a way to misread one, or to run code through one."""

import pytest

from verify.contract.expression import ExpressionError, evaluate, names_in


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3*tile - 1", 95),
        ("ceil_div(len[0], tile)", 4),
        ("round_up(len[1], 8)", 104),
        ("-tile // 5", -7),
        ("1 < 2 < 3 and not tile == 33", True),
        ("max(len) % tile", 4),
        ("2 ** 10", 1024),
        ("len[0] / 2", 50.0),
    ],
)
def test_value(text: str, value: object) -> None:
    """Fault: wrong precedence or a wrong operation moves a fixture off its edge."""
    assert evaluate(text, {"tile": 32, "len": (100, 100)}) == value


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "tile.real", "[1,2]", "lambda: 1", "tile if 1 else 2", "open('x')", "'a'", "f(1)"],
)
def test_refuses_what_is_not_arithmetic(text: str) -> None:
    """Fault: a fixture file can run code."""
    with pytest.raises(ExpressionError):
        evaluate(text, {"tile": 32})


def test_unknown_name_is_listed_with_the_known_ones() -> None:
    """Fault: the message about a typing error does not show the known names."""
    with pytest.raises(ExpressionError, match=r"unknown name 'tlie' \(known: tile\)"):
        evaluate("tlie", {"tile": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2**64**64", "256 bits"),
        ("((2**64)**4)**64", "256 bits"),
        ("*".join(["(2**250)"] * 30), "256 bits"),
        ("(-3) ** 2000", "256 bits"),
        ("len * 1000000000", "'len' is not a number"),
        ("-len", "'len' is not a number"),
        ("(" * 900 + "1" + ")" * 900, "is not an expression|nested too deeply"),
        ("-" * 1999 + "1", "nested too deeply"),
        ("1" + "+1" * 3000, "6001 characters"),
        ("1\0", "is not an expression"),
        ("9" * 1990 + "+1", "256 bits"),
    ],
)
def test_work_is_bounded(text: str, words: str) -> None:
    """Fault: a fixture's power tower, or 5,000 parentheses, hang the suite or end it with a traceback."""
    with pytest.raises(ExpressionError, match=words):
        evaluate(text, {"len": (1, 2)})


def test_powers_that_sizes_need_are_computed() -> None:
    """Fault: the bound on work rejects an offset past 2^31, or a small power of a large number."""
    assert evaluate("2**40 * 3 + 1 ** 5000", {}) == 3 * 2**40 + 1
    assert evaluate("n ** 2", {"n": 2**62}) == 2**124


@pytest.mark.parametrize("text", ["1 // 0", "len[9]", "2 ** 100000", "1 +"])
def test_failed_arithmetic_names_the_expression(text: str) -> None:
    """Fault: arithmetic that fails ends in a Python traceback."""
    with pytest.raises(ExpressionError, match=r"."):
        evaluate(text, {"len": (1,)})


def test_names_in_leaves_out_functions() -> None:
    """Fault: a function counts as a name, so that no fixture with max() can be resolved."""
    assert names_in("max(tile, 3) + len[0]") == {"tile", "len"}
