"""What is to be verified: kernels, fixtures by ``-k``, checks by ``--check``."""

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


@dataclass(frozen=True)
class Selection:
    """What to verify.

    expression: ``-k`` over fixture names. fixtures: names instead of an expression; both empty means all.
    checks: empty for the device's usual ones. architecture: None builds for the device's own. keep: where a
    folder that reproduces a finding without Python is left; None: nowhere. ladder: every rung of the oracle
    ladder, so the parity check and token parity as well. seeds: the schedules to try, 0 for the usual ones.
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
        """The fixtures wanted, of all ``names``. Raises SelectionError when none is."""
        return self.fixtures or select_names(names, self.expression)


def keep_folder(selection: Selection, contract: Contract) -> Path | None:
    """Where the folders of one contract's findings go: apart from those of another one of its name."""
    namesakes = [c for c in selection.contracts if c.name == contract.name]
    if selection.keep is None or len(namesakes) < 2:
        return selection.keep
    return selection.keep / f"{contract.name}-{digest([str(contract.file)])[:8]}"


def narrowed(selection: Selection) -> Selection:
    """Without the kernels of which no fixture is selected, before anything is built.

    Raises SelectionError when none is left, FixtureError for a fixture file that cannot be read.
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
