"""The selection of kernels, fixtures (``-k``) and checks (``--check``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from verify.check.specs import CHECKS
from verify.contract.discovery import fixture_file
from verify.contract.model import Contract
from verify.fixture.axes import family_of
from verify.fixture.schema import load_fixtures
from verify.toolchain.cache import digest

_TOKEN = re.compile(r"\s*(\(|\)|[^\s()]+)")


class SelectionError(ValueError):
    """A selection matches nothing; the message lists what exists."""


def some_of(names: Sequence[str], like: str = "", most: int = 8) -> str:
    """Names for a message: all if they are few, else those most similar to ``like``, or the first."""
    if len(names) <= most:
        return ", ".join(names)
    near = get_close_matches(like.rpartition("/")[2], [_last(n) for n in names], most, 0.5)
    shown = [n for n in names if _last(n) in near][:most] or list(names[:most])
    return f"{', '.join(shown)} and {len(names) - len(shown)} more, see verify list"


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def select_names(names: Sequence[str], expression: str | None) -> tuple[str, ...]:
    """The names that a ``-k`` expression selects, in order.

    A full name selects only itself, or the fixtures that its axes expand to. Otherwise words match as
    substrings and may be joined by ``and``, ``or``, ``not`` and parentheses, as in pytest. Raises
    SelectionError if nothing matches or the expression cannot be parsed.
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
    """The named checks, in the suite's order; all ``available`` ones if none is named."""
    wanted = tuple(given)
    for name in wanted:
        if name not in CHECKS:
            raise SelectionError(f"--check {name}: is not one of {', '.join(CHECKS)}")
    return tuple(c for c in CHECKS if c in wanted) if wanted else tuple(available)


@dataclass(frozen=True)
class Selection:
    """What to verify.

    expression: ``-k`` over fixture names. fixtures: names instead of an expression; both empty means all.
    checks: empty for the device's usual ones. architecture: None for the device's own. keep: the folder for
    reproductions of findings; None: none are written. ladder: climb every rung of the oracle ladder,
    including the parity check and token parity. seeds: how many schedules to try, 0 for the usual ones.
    """

    contracts: tuple[Contract, ...]
    expression: str | None = None
    fixtures: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    strict: bool = False
    architecture: str | None = None
    keep: Path | None = None
    ladder: bool = False
    seeds: int = 0

    def select(self, names: Sequence[str]) -> Sequence[str]:
        """The selected fixtures of ``names``. Raises SelectionError if there is none."""
        return self.fixtures or select_names(names, self.expression)


def keep_folder(selection: Selection, contract: Contract) -> Path | None:
    """The folder for one contract's findings, separate from that of another contract of the same name."""
    namesakes = [c for c in selection.contracts if c.name == contract.name]
    if selection.keep is None or len(namesakes) < 2:
        return selection.keep
    return selection.keep / f"{contract.name}-{digest([str(contract.file)])[:8]}"


def narrowed(selection: Selection) -> Selection:
    """The selection without kernels of which no fixture is selected, before anything is built.

    Raises SelectionError if none is left, FixtureError for a fixture file that cannot be read.
    """
    kept: list[Contract] = []
    missed: list[SelectionError] = []
    for contract in selection.contracts:
        try:
            selection.select([f.name for f in load_fixtures(fixture_file(contract), contract)])
        except SelectionError as error:
            missed.append(error)
        else:
            kept.append(contract)
    if missed and not kept:
        raise missed[0]
    return replace(selection, contracts=tuple(kept))


class _Matcher:
    """A recursive-descent parser that matches one expression against one name."""

    def __init__(self, tokens: Sequence[str], name: str, expression: str) -> None:
        self._tokens, self._name, self._expression, self._at = list(tokens), name.lower(), expression, 0

    def matches(self) -> bool:
        result = self._either()
        if self._at != len(self._tokens):
            raise SelectionError(f"-k {self._expression!r}: cannot be parsed at {self._tokens[self._at]!r}")
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
