"""All operators, and the mutants that they make of a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from verify.mutation.edit import apply
from verify.mutation.operators import (
    arithmetic,
    conditions,
    indices,
    instances,
    launches,
    synchronisation,
    warps,
)
from verify.mutation.operators.code import Change, Code, Operator

OPERATORS: tuple[Operator, ...] = (
    *synchronisation.OPERATORS,
    *warps.OPERATORS,
    *conditions.OPERATORS,
    *indices.OPERATORS,
    *arithmetic.OPERATORS,
    *launches.OPERATORS,
    *instances.OPERATORS,
)
"""Every operator, the more telling of two that can make the same change first."""


@dataclass(frozen=True)
class Made:
    """A mutant that an operator has made. source: the whole changed source. line: 1-based, of the change."""

    operator: Operator
    change: Change
    source: bytes
    line: int
    number: int
    """From 1: the operator's changes on this line are counted."""

    @property
    def name(self) -> str:
        """``barrier-dropped@12`` or, for a further one on that line, ``barrier-dropped@12.2``."""
        further = f".{self.number}" if self.number > 1 else ""
        return f"{self.operator.name}@{self.line}{further}"


def mutants_by_operators(code: Code, operators: Sequence[Operator] = OPERATORS) -> Iterator[Made]:
    """All mutants of a source, those that two operators make alike once, by operator and place."""
    original, seen = code.tree.source, {code.tree.source}
    for operator in operators:
        on_line: dict[int, int] = {}
        for change in sorted(operator.changes(code), key=lambda c: c.start):
            line = original.count(b"\n", 0, change.start) + 1
            on_line[line] = number = on_line.get(line, 0) + 1
            mutated = apply(original, change.edits)
            if mutated not in seen:
                seen.add(mutated)
                yield Made(operator, change, mutated, line, number)
