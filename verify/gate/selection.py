"""What a command line selects: fixtures by ``-k``, checks by ``--check``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from verify.check.specs import CHECKS
from verify.fixture.axes import family_of

_TOKEN = re.compile(r"\s*(\(|\)|[^\s()]+)")


class SelectionError(ValueError):
    """A selection that names nothing; the message lists what there is."""


def some_of(names: Sequence[str], like: str = "", most: int = 8) -> str:
    """Names for a message: all of a few, else those most like what was asked for, or the first."""
    if len(names) <= most:
        return ", ".join(names)
    near = get_close_matches(like.rpartition("/")[2], [_last(n) for n in names], most, 0.5)
    shown = [n for n in names if _last(n) in near][:most] or list(names[:most])
    return f"{', '.join(shown)} and {len(names) - len(shown)} more, see verify list"


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def select_names(names: Sequence[str], expression: str | None) -> tuple[str, ...]:
    """The names that a ``-k`` expression selects, in order.

    A name given in full selects only itself, or what the axes of a fixture make of it. Otherwise words match
    as substrings and may be joined by ``and``, ``or``, ``not`` and parentheses, as in pytest. Raises
    SelectionError when nothing matches or the expression cannot be read.
    """
    if not expression or not expression.strip():
        return tuple(names)
    if expression in names:
        return (expression,)
    if family := tuple(n for n in names if family_of(n) == expression):
        return family
    tokens = _TOKEN.findall(expression)
    try:
        chosen = tuple(n for n in names if _Matcher(tokens, n, expression).matches())
    except RecursionError:
        raise SelectionError(f"-k {expression[:60]!r}...: is nested too deeply") from None
    if not chosen:
        raise SelectionError(f"-k {expression!r}: selects none of {some_of(names, expression)}")
    return chosen


def select_checks(given: Iterable[str], available: Sequence[str]) -> tuple[str, ...]:
    """The checks named, in the suite's own order; all ``available`` ones when none is named."""
    wanted = tuple(given)
    for name in wanted:
        if name not in CHECKS:
            raise SelectionError(f"--check {name}: is not one of {', '.join(CHECKS)}")
    return tuple(c for c in CHECKS if c in wanted) if wanted else tuple(available)


class _Matcher:
    """Recursive descent over the words of one expression, for one name."""

    def __init__(self, tokens: Sequence[str], name: str, expression: str) -> None:
        self._tokens, self._name, self._expression, self._at = list(tokens), name.lower(), expression, 0

    def matches(self) -> bool:
        result = self._either()
        if self._at != len(self._tokens):
            raise SelectionError(f"-k {self._expression!r}: cannot be read at {self._tokens[self._at]!r}")
        return result

    def _either(self) -> bool:
        result = self._both()
        while self._take("or"):
            result = self._both() or result
        return result

    def _both(self) -> bool:
        result = self._one()
        while self._take("and"):
            result = self._one() and result
        return result

    def _one(self) -> bool:
        if self._take("not"):
            return not self._one()
        if self._take("("):
            result = self._either()
            if not self._take(")"):
                raise SelectionError(f"-k {self._expression!r}: a ')' is missing")
            return result
        if self._at == len(self._tokens) or self._tokens[self._at] in (")", "and", "or"):
            raise SelectionError(f"-k {self._expression!r}: a word is missing")
        self._at += 1
        return self._tokens[self._at - 1].lower() in self._name

    def _take(self, word: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == word:
            self._at += 1
            return True
        return False
