"""Tries mutants of one kernel on one device: each by a full run, until a check reports it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from verify.check.matrix import runs_for
from verify.check.specs import usual_checks
from verify.check.subject import Subject
from verify.contract.discovery import source_file
from verify.contract.model import Contract
from verify.device.interface import TOOLS, Device
from verify.finding.finding import Finding, Outcome, Severity, Verdict
from verify.finding.kind import HANGS
from verify.fixture.schema import FixtureError
from verify.gate.gate import ask_checks, subject_of
from verify.gate.prepare import Prepared, Target, prepare, targets_of
from verify.gate.selection import Selection
from verify.harness.build import Build, build_harness
from verify.harness.rebuild import ExchangeError, HostSide, host_side, rebuild_device
from verify.mutation.equivalence import device_code, host_code
from verify.mutation.field_rules import caught_by_rules
from verify.mutation.mutant import Fate, Kill, Mutant, Origin, Result
from verify.mutation.planting import with_source
from verify.system.progress import Progress
from verify.toolchain.compile import BuildError
from verify.wire.run import Run

CHEAP = (("compare",), TOOLS, ("traffic",), ("poison",))
"""Checks that are asked together, the cheapest first: on the likeliest fixtures, before all on all of
them."""
DEAR = (("launch",), ("determinism",), ("parity",))
LIKELIEST = 2
"""Fixtures that are tried before the others."""


@dataclass
class _Right:
    """The right kernel for one target: ready, its oracle asked and the pace of its runs known."""

    target: Target
    ready: Prepared
    device: Device

    @cached_property
    def host(self) -> HostSide:
        return host_side(self.ready.build)

    @cached_property
    def device_code(self) -> tuple[str, ...]:
        return device_code(self.ready.build.binary)


@dataclass
class _Seen:
    """The checks' results for one mutant so far."""

    kills: dict[str, Kill] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    open: dict[str, str] = field(default_factory=dict)
    caught: dict[str, bool] = field(default_factory=dict)
    hung: str = ""

    def note(self, outcomes: Sequence[Outcome], architecture: str, whole: bool) -> None:
        """whole: all fixtures were asked; of some, a check may be unable to say anything."""
        for outcome in outcomes:
            if outcome.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_RUN) and whole:
                self.open.setdefault(outcome.check, f"{outcome.check} of {outcome.fixture}: {outcome.reason}")
            for finding in outcome.findings:
                if finding.severity is not Severity.ERROR:
                    continue
                if finding.kind in HANGS:  # slow is not wrong: only a deadlock that is seen counts
                    self.hung = self.hung or f"{outcome.fixture}: {finding.seen}"
                    continue
                self.kinds.add(finding.kind)
                if outcome.check not in self.kills:
                    self.kills[outcome.check] = _kill(outcome, finding, architecture)


def _kill(outcome: Outcome, finding: Finding, architecture: str) -> Kill:
    return Kill(outcome.check, finding.kind, finding.case.partition("/")[2], finding.seen, architecture)


class Bench:
    """One kernel on one device. It is prepared for a target once, when the first mutant needs it."""

    def __init__(
        self, contract: Contract, device: Device, architecture: str | None, progress: Progress
    ) -> None:
        self._contract, self._progress = contract, progress
        self._selection = Selection((contract,), architecture=architecture)
        # The newest architecture first: its code has the error-prone paths.
        self._targets = tuple(reversed(targets_of(self._selection, device)))
        self._checks = usual_checks(device)
        self._machine_code = device.name != "cpu"
        self._device = device.name
        self._ready: dict[str, _Right] = {}

    def run(self, mutant: Mutant, every: bool = False, likely: Sequence[str] = ()) -> Result:
        """Try a mutant. every: run all checks, to see each one that reports it.

        likely: fixtures that have killed mutants of this kernel, the most effective first.
        """
        started = time.monotonic()
        if mutant.equivalent:
            return Result(mutant.kernel, mutant.name, Fate.EXPLAINED, reason=mutant.equivalent)
        if self._device not in mutant.devices:
            only = f"only on {', '.join(mutant.devices)}"
            return Result(mutant.kernel, mutant.name, Fate.NOT_VISIBLE, reason=only)
        seen = _Seen()
        try:
            fate, reason = self._fate(mutant, every, likely, seen)
        except BuildError as error:
            fate, reason = Fate.NOT_COMPILED, _first_error(str(error))
        except Exception as error:  # whatever a fault breaks, continue with the other mutants
            fate, reason = Fate.UNDECIDED, f"{type(error).__name__}: {' '.join(str(error).split())}"
        if seen.kills:
            fate, reason = Fate.KILLED, ""
        silent = self._silent(mutant, seen) if every and fate is Fate.KILLED else ()
        seconds = time.monotonic() - started
        kills = tuple(seen.kills.values())
        return Result(mutant.kernel, mutant.name, fate, kills, silent, seen.caught, reason, seconds)

    def _fate(self, mutant: Mutant, every: bool, likely: Sequence[str], seen: _Seen) -> tuple[Fate, str]:
        planted = with_source(self._contract, mutant.source)
        for target in self._targets:
            right = self._right(target)
            ready = self._ready_for(planted, mutant, right)
            with tempfile.TemporaryDirectory(prefix="verify-mutant-") as scratch:
                for _ in self._asked(mutant, ready, right, every, likely, Path(scratch), seen):
                    if seen.hung or (seen.kills and not every):
                        break
            if seen.hung:
                return Fate.TIMED_OUT, seen.hung
            if seen.kills and not every:
                return Fate.KILLED, ""
        if seen.open:
            return Fate.UNDECIDED, next(iter(seen.open.values()))
        if not seen.kills and self._is_same(mutant, planted):
            return Fate.EQUIVALENT, ""
        return Fate.SURVIVED, ""

    def _asked(
        self,
        mutant: Mutant,
        ready: Prepared,
        right: _Right,
        every: bool,
        likely: Sequence[str],
        scratch: Path,
        seen: _Seen,
    ) -> Iterator[None]:
        """Run one group of checks after the other, yielding after each."""
        architecture = right.target.architecture
        groups = self._groups(mutant)
        if not every:
            some = _only(ready, _likeliest(ready, likely))
            subject = self._subject(some, right, scratch / "some")
            for group in (g for g in groups if g not in DEAR or g is groups[0]):
                seen.note(ask_checks(subject, self._left(group, seen)), architecture, False)
                yield
        subject = self._subject(ready, right, scratch / "all")
        for group in groups:
            seen.note(ask_checks(subject, self._left(group, seen)), architecture, True)
            if every and "compare" in group and not seen.hung:
                for rule, caught in caught_by_rules(
                    subject, subject.execute(_compared(ready)).values()
                ).items():
                    seen.caught[rule] = seen.caught.get(rule, False) or caught
            yield

    def _groups(self, mutant: Mutant) -> list[tuple[str, ...]]:
        """Groups of checks; those that a catalogue expects come first."""
        expected = mutant.expected(self._device)
        return sorted((*CHEAP, *DEAR), key=lambda group: not set(group) & set(expected))

    def _left(self, group: Sequence[str], seen: _Seen) -> tuple[str, ...]:
        """The checks of a group that the device has and that have not reported the mutant yet."""
        return tuple(c for c in group if c in self._checks and c not in seen.kills)

    def _subject(self, ready: Prepared, right: _Right, folder: Path) -> Subject:
        folder.mkdir()
        return subject_of(ready, right.device, folder, self._selection, _silent)

    def _right(self, target: Target) -> _Right:
        """The right kernel for a target. Raises what :func:`prepare` raises."""
        architecture = target.architecture
        if architecture not in self._ready:
            before = next(iter(self._ready.values()), None)
            self._progress(f"{self._contract.name}: preparing for {architecture}")
            ready = prepare(
                self._contract,
                self._selection.select,
                (architecture,),
                target.sm_count,
                self._progress,
                self._machine_code,
                before.ready if before is not None else None,
            )
            assert target.device is not None
            right = _Right(target, ready, target.device)
            # Measures the pace of its runs, from which a hanging mutant is recognised.
            some = _only(ready, _likeliest(ready, ()))
            with tempfile.TemporaryDirectory(prefix="verify-right-") as scratch:
                ask_checks(self._subject(some, right, Path(scratch) / "right"), ("compare",))
            self._ready[architecture] = right
        return self._ready[architecture]

    def _build(self, planted: Contract, mutant: Mutant, right: _Right) -> Build:
        if mutant.device_only and not self._machine_code:
            try:
                return rebuild_device(right.host, planted)
            except ExchangeError:  # device code for the linker, say, which stands elsewhere
                pass
        return build_harness(planted, (right.target.architecture,), _silent, machine_code=self._machine_code)

    def _ready_for(self, planted: Contract, mutant: Mutant, right: _Right) -> Prepared:
        """The mutant with the right kernel's cases, where its plan is the same.

        If its plan refuses a fixture that the right kernel accepts, there are no cases for that plan. The
        mutant then runs on the right kernel's cases, and compare reports that its launcher refuses them.
        """
        build = self._build(planted, mutant, right)
        given = replace(right.ready, contract=planted, build=build)
        try:
            ready = prepare(
                planted,
                self._selection.select,
                build.architectures,
                right.target.sm_count,
                _silent,
                self._machine_code,
                given,
            )
        except FixtureError:
            return given
        return replace(ready, pace=right.ready.pace)

    def _is_same(self, mutant: Mutant, planted: Contract) -> bool:
        """Whether the mutant is the original's program on every architecture."""
        for target in self._targets:
            right = self._right(target)
            if device_code(self._build(planted, mutant, right).binary) != right.device_code:
                return False
            if not mutant.device_only:
                built = right.ready.build
                original = with_source(
                    self._contract, source_file(self._contract).read_text(encoding="utf-8")
                )
                ours, theirs = (
                    host_code(one, built.architectures, built.toolchain) for one in (original, planted)
                )
                if ours != theirs:
                    return False
        return True

    def _silent(self, mutant: Mutant, seen: _Seen) -> tuple[str, ...]:
        """What a catalogue's row expects but no check reported."""
        if mutant.origin is not Origin.CATALOGUE:
            return ()
        silent = [c for c in mutant.expected(self._device) if c not in seen.kills and c in self._checks]
        if mutant.finding and not any(mutant.finding in kind for kind in seen.kinds):
            silent.append(f"a finding called {mutant.finding!r}")
        return tuple(silent)


def _compared(ready: Prepared) -> Iterator[Run]:
    for cases in ready.cases.values():
        yield from runs_for("compare", cases)


def _likeliest(ready: Prepared, likely: Sequence[str]) -> list[str]:
    """The fixtures that have shown most so far, then those of the least data."""
    names = [r.fixture.name for r in ready.fixtures]
    known = [name for name in likely if name in names]
    rest = sorted((n for n in names if n not in known), key=lambda n: _bytes(ready, n))
    return [*known, *rest][:LIKELIEST]


def _bytes(ready: Prepared, fixture: str) -> int:
    return sum(array.nbytes for case in ready.cases[fixture].values() for array in case.arrays.values())


def _only(ready: Prepared, names: Sequence[str]) -> Prepared:
    return replace(
        ready,
        fixtures=tuple(r for r in ready.fixtures if r.fixture.name in names),
        cases={name: cases for name, cases in ready.cases.items() if name in names},
    )


def _first_error(said: str) -> str:
    lines = [line for line in said.splitlines() if "error" in line.lower()]
    return (lines or said.splitlines() or [""])[0].strip()


def _silent(_: str) -> None:
    pass
