"""Prepares a kernel for a device: builds the harness, resolves the fixtures, builds the cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verify.check.pace import Pace
from verify.contract.discovery import fixture_file
from verify.contract.model import Case, Contract
from verify.device.interface import Device
from verify.fixture.axes import family_of
from verify.fixture.cases import build_cases, first_case
from verify.fixture.resolve import ResolvedFixture, resolve_fixtures
from verify.fixture.schema import Fixture, load_fixtures
from verify.gate.selection import Selection
from verify.harness.build import Build, build_harness
from verify.harness.plan import query_plans
from verify.oracle.expectation import Quantity
from verify.system.progress import Progress

PLANNED_MULTIPROCESSORS = 132
"""The multiprocessor count for plans if there is no device: that of an H100 or H200."""


@dataclass(frozen=True)
class Prepared:
    """A kernel that is ready for a device, with all its cases.

    expected: references and bounds by case, computed on demand. known: how many fixtures the kernel has,
    selected or not. bases: by fixture, the base of refusals, selected or not. agreed: by case, how many
    elements of its expectation arbitrary precision has confirmed. pace: how long its runs take.
    """

    contract: Contract
    build: Build
    fixtures: tuple[ResolvedFixture, ...]
    cases: Mapping[str, Mapping[str, Case]]
    expected: dict[str, Mapping[str, Quantity]] = field(default_factory=dict)
    known: int = 0
    bases: Mapping[str, tuple[Fixture, Case]] = field(default_factory=dict)
    agreed: dict[str, int] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)


def prepare(
    contract: Contract,
    selected: Callable[[Sequence[str]], Sequence[str]],
    architecture: str | Sequence[str] | None,
    sm_count: int,
    progress: Progress,
    machine_code: bool = True,
    before: Prepared | None = None,
    changed: Callable[[Fixture], Fixture] = lambda fixture: fixture,
) -> Prepared:
    """Build the harness, resolve the selected fixtures, build their cases.

    selected: maps all fixture names to the selected ones. sm_count: the multiprocessor count for the
    launcher's plan. machine_code: False for a harness with only PTX. before: the same kernel prepared for
    another architecture; if a fixture resolves to the same numbers, its cases and expectations are reused.
    changed: maps each fixture to the one to use, for example with a larger batch.
    Raises FixtureError, ContractError, SelectionError or BuildError, each with a one-line message.
    """
    fixtures = load_fixtures(fixture_file(contract), contract)
    chosen = selected([f.name for f in fixtures])
    wanted = [changed(f) for f in fixtures if f.name in chosen]
    starting = _refusal_bases(contract, fixtures)
    if before is not None and before.build.architectures == architecture:
        build = before.build
    else:
        build = build_harness(contract, architecture, progress, machine_code=machine_code)

    def ask(requests: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, int]]:
        return query_plans(build, contract, requests, sm_count)

    asked = resolve_fixtures([*wanted, *starting], contract, ask if contract.plan else None)
    resolved, starts = asked[: len(wanted)], asked[len(wanted) :]
    progress(f"{contract.name}: building {len(resolved)} fixtures' cases")
    same = {r.fixture.name for r in resolved if before is not None and r in before.fixtures}
    cases = {
        r.fixture.name: before.cases[r.fixture.name]
        if before is not None and r.fixture.name in same
        else {c.profile: c for c in build_cases(contract, r)}
        for r in resolved
    }
    expected = {
        case.id: before.expected[case.id]
        for name in same
        for case in cases[name].values()
        if before is not None and case.id in before.expected
    }
    bases = {r.fixture.name: (r.fixture, first_case(contract, r)) for r in starts}
    agreed = {case: n for case, n in before.agreed.items() if case in expected} if before is not None else {}
    return Prepared(contract, build, resolved, cases, expected, len(fixtures), bases, agreed)


def _refusal_bases(contract: Contract, fixtures: Sequence[Fixture]) -> list[Fixture]:
    """The fixtures that refusals are based on: the contract's first, and those that they name."""
    named = {refusal.fixture for refusal in contract.refusals}
    named |= {fixtures[0].name} if named else set()
    return [f for f in fixtures if f.name in named or family_of(f.name) in named]


@dataclass(frozen=True)
class Target:
    """One kernel on one device for one architecture. built: the architectures of its harness."""

    contract: Contract
    device: Device | None
    architecture: str
    sm_count: int
    built: tuple[str, ...]


def targets_of(selection: Selection, device: Device | None) -> list[Target]:
    """The targets of a run: on the CPU device, one for each architecture of a contract."""
    targets = []
    for contract in selection.contracts:
        wanted = (selection.architecture,) if selection.architecture else contract.architectures
        if device is None:
            targets.append(Target(contract, None, wanted[-1], PLANNED_MULTIPROCESSORS, (wanted[-1],)))
            continue
        variants = [(variant, variant.info()) for variant in device.variants(wanted)]
        built = tuple(selection.architecture or info.architecture for _, info in variants)
        targets += [
            Target(contract, variant, architecture, info.sm_count, built)
            for (variant, info), architecture in zip(variants, built, strict=True)
        ]
    return targets
