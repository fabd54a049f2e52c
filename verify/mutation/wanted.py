"""Selects mutants: of the catalogue, of the operators, by name, or a sample of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from verify.contract.discovery import source_file
from verify.contract.model import Contract
from verify.gate.selection import SelectionError, select_names
from verify.mutation.catalogue import catalogue_of, explained_of, is_device_only, with_reasons
from verify.mutation.mutant import Mutant, Origin, named_twice
from verify.mutation.operators.all import mutants_by_operators
from verify.mutation.operators.code import Code

SAMPLE_SEED = 1


def operators_mutants_of(contract: Contract) -> tuple[Mutant, ...]:
    """All mutants that the operators make of a contract's source, in the order of the source.

    Raises CatalogueError for a listed reason whose mutant is not there any more.
    """
    original = source_file(contract).read_text(encoding="utf-8")
    code = Code.of(original)
    mutants = []
    for made in mutants_by_operators(code):
        changed = made.source.decode()
        mutants.append(
            Mutant(
                contract.name,
                made.name,
                made.operator.kind,
                f"{' '.join(made.change.fault.split())}.",
                changed,
                made.line,
                Origin.OPERATOR,
                is_device_only(code.tree, changed),
            )
        )
    mutants.sort(key=lambda m: m.line)
    return with_reasons(mutants, explained_of(contract), original)


def mutants_wanted(
    contracts: Sequence[Contract], catalogue: bool, operators: bool, expression: str | None, sample: int = 0
) -> list[Mutant]:
    """The mutants of some contracts, by kernel, those of the catalogue first.

    expression: ``-k`` over their names, or over their kinds. sample: so many of them at most, drawn so that
    every kind and every operator has its turn; 0 for all. Raises SelectionError when there is none,
    CatalogueError and PatchError for a catalogue that does not fit.
    """
    every: list[Mutant] = []
    for contract in contracts:
        every += catalogue_of(contract) if catalogue else ()
        every += operators_mutants_of(contract) if operators else ()
    if twice := named_twice(every):
        raise SelectionError(f"two mutants are called {twice[0]}")
    if not every:
        raise SelectionError("there is no mutant: the catalogue has none for what is named")
    names = {_label(m): m for m in every}
    if expression:
        exact = [label for label, m in names.items() if m.name == expression]
        chosen = exact or select_names(tuple(names), expression)
        every = [names[label] for label in chosen]
    return sampled(every, sample) if sample else every


def _label(mutant: Mutant) -> str:
    """What ``-k`` looks at: a name alone would not select a kind, or the mutants of one kernel of several."""
    return f"{mutant.kernel} {mutant.name} {mutant.kind} {mutant.origin}"


def sampled(mutants: Sequence[Mutant], count: int) -> list[Mutant]:
    """So many mutants, one of each kernel, kind and operator before a second one of any; the same ones
    always."""
    groups: dict[tuple[str, str, str], list[Mutant]] = {}
    for mutant in mutants:
        operator = mutant.name.partition("@")[0] if mutant.origin is Origin.OPERATOR else ""
        groups.setdefault((mutant.kernel, str(mutant.kind), operator), []).append(mutant)
    draw = random.Random(SAMPLE_SEED)
    waiting = [draw.sample(group, len(group)) for group in groups.values()]
    draw.shuffle(waiting)
    chosen: list[Mutant] = []
    while waiting and len(chosen) < count:
        for group in waiting[: count - len(chosen)]:
            chosen.append(group.pop())
        waiting = [group for group in waiting if group]
    order = {id(mutant): number for number, mutant in enumerate(mutants)}
    return sorted(chosen, key=lambda m: order[id(m)])
