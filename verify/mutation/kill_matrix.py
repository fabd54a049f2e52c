"""The kill matrix: which checks report how many mutants, and how many of each kind are reported at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from verify.check.specs import CHECKS
from verify.device.interface import TOOLS
from verify.mutation.campaign import Campaign
from verify.mutation.field_rules import RULES
from verify.mutation.kinds import NOT_PRESENT, Kind
from verify.mutation.mutant import Fate, Mutant, Origin, Result
from verify.system.exit_code import ExitCode

TRIED = (Fate.KILLED, Fate.SURVIVED, Fate.TIMED_OUT, Fate.UNDECIDED)
"""What became of mutants that are faults: the score is the killed ones of these."""


@dataclass(frozen=True)
class Score:
    """Killed mutants of those that are faults."""

    name: str
    killed: int
    of: int

    def __str__(self) -> str:
        return f"{self.killed} of {self.of}" + (f" ({100 * self.killed / self.of:.1f}%)" if self.of else "")


@dataclass(frozen=True)
class CheckRow:
    """One check: mutants that it reported first; all that it reported, and those that nobody else did, where
    every check was asked; mutants whose row expects it."""

    check: str
    first: int
    every: int | None
    alone: int | None
    expected: int


@dataclass(frozen=True)
class KillMatrix:
    """A campaign, counted. every: all checks were asked of each mutant."""

    campaign: Campaign
    device: str
    every: bool

    @property
    def pairs(self) -> list[tuple[Mutant, Result]]:
        """Mutants with their results."""
        return list(zip(self.campaign.mutants, self.campaign.results, strict=True))

    @property
    def tried(self) -> list[tuple[Mutant, Result]]:
        """Those that are faults."""
        return [(m, r) for m, r in self.pairs if r.fate in TRIED]

    @property
    def total(self) -> Score:
        """Over everything."""
        return _score("all", self.tried)

    @property
    def fates(self) -> dict[Fate, int]:
        """How many mutants came to each end."""
        counts = Counter(r.fate for r in self.campaign.results)
        return {fate: counts[fate] for fate in Fate if counts[fate]}

    def of(self, *fates: Fate) -> list[tuple[Mutant, Result]]:
        """Those of some fates, in order."""
        return [(m, r) for m, r in self.pairs if r.fate in fates]

    @property
    def by_kernel(self) -> list[Score]:
        """A score for each kernel."""
        return _scores(self.tried, lambda m: m.kernel)

    @property
    def by_kind(self) -> list[Score]:
        """A score for each kind, in the order of the kinds."""
        order = {str(kind): n for n, kind in enumerate(Kind)}
        return sorted(_scores(self.tried, lambda m: str(m.kind)), key=lambda s: order[s.name])

    @property
    def by_operator(self) -> list[Score]:
        """A score for each operator."""
        made = [(m, r) for m, r in self.tried if m.origin is Origin.OPERATOR]
        return _scores(made, lambda m: m.name.partition("@")[0])

    @property
    def by_check(self) -> list[CheckRow]:
        """A row for each check that reported or was expected to report anything."""
        first = Counter(r.killers[0] for _, r in self.tried if r.killers)
        each = Counter(check for _, r in self.tried for check in r.killers)
        alone = Counter(r.killers[0] for _, r in self.tried if len(r.killers) == 1)
        expected = Counter(check for m, _ in self.tried for check in m.expected(self.device))
        return [
            CheckRow(
                check,
                first[check],
                each[check] if self.every else None,
                alone[check] if self.every else None,
                expected[check],
            )
            for check in CHECKS
            if each[check] or expected[check]
        ]

    @property
    def by_rule(self) -> list[Score]:
        """What each of the field's rules, and the tools alone, would have caught; none where not all were
        asked."""
        if not self.every:
            return []
        seen = [(m, r) for m, r in self.tried if r.caught]
        rules = [Score(rule, sum(r.caught.get(rule, False) for _, r in seen), len(seen)) for rule in RULES]
        tools = sum(any(tool in r.killers for tool in TOOLS) for _, r in seen)
        return [*rules, Score("the four tools alone", tools, len(seen)), Score("all checks", *_killed(seen))]

    @property
    def weak(self) -> list[tuple[Mutant, Result]]:
        """Killed mutants that a check did not report which their row names."""
        return [(m, r) for m, r in self.pairs if r.silent]

    @property
    def exit_code(self) -> ExitCode:
        """Clean when every fault was reported, and at least one was tried."""
        if self.of(Fate.SURVIVED, Fate.TIMED_OUT) or self.weak:
            return ExitCode.FINDINGS
        if self.of(Fate.UNDECIDED) or not self.tried:
            return ExitCode.NOT_VERIFIED
        return ExitCode.CLEAN

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "schema": 1,
            "device": self.device,
            "exit_code": self.exit_code,
            "seconds": round(self.campaign.seconds, 1),
            "known": self.campaign.known,
            "every_check": self.every,
            "score": vars(self.total),
            "fates": {str(fate): n for fate, n in self.fates.items()},
            "kernels": [vars(s) for s in self.by_kernel],
            "kinds": [vars(s) for s in self.by_kind],
            "not_present": {str(kind): why for kind, why in NOT_PRESENT.items()},
            "operators": [vars(s) for s in self.by_operator],
            "checks": [vars(row) for row in self.by_check],
            "rules": [vars(s) for s in self.by_rule],
            "mutants": [self._row(m, r) for m, r in self.pairs],
        }

    def _row(self, mutant: Mutant, result: Result) -> dict[str, Any]:
        return {
            **result.as_json(),
            "kind": str(mutant.kind),
            "fault": mutant.fault,
            "origin": str(mutant.origin),
            "line": mutant.line,
            "expected": list(mutant.expected(self.device)),
            "public": list(mutant.public),
        }


def _killed(pairs: Sequence[tuple[Mutant, Result]]) -> tuple[int, int]:
    return sum(r.fate is Fate.KILLED for _, r in pairs), len(pairs)


def _score(name: str, pairs: Sequence[tuple[Mutant, Result]]) -> Score:
    return Score(name, *_killed(pairs))


def _scores(pairs: Iterable[tuple[Mutant, Result]], name: Callable[[Mutant], str]) -> list[Score]:
    groups: dict[str, list[tuple[Mutant, Result]]] = {}
    for mutant, result in pairs:
        groups.setdefault(name(mutant), []).append((mutant, result))
    return [_score(key, group) for key, group in groups.items()]
