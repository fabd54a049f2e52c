"""How a finding is reproduced: by which runs, and what in their results is the finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from verify.check.carried import CALLS_BEFORE
from verify.check.matrix import runs_for
from verify.contract.model import Case
from verify.device.interface import TOOLS, Tool
from verify.finding.finding import Finding
from verify.finding.kind import FaultKind
from verify.wire.run import Run

SCHEDULE = "schedule"
"""The detail of a finding that only another schedule shows: the seed of that schedule."""


@dataclass(frozen=True)
class Showing:
    """runs: the runs of the pack. judged: the runs whose outputs are compared with their bounds.

    same: runs whose outputs must have the same bits; the first is compared with each other one. row: (row,
    rows) if the first is a batch and the others are that row alone. schedule: the seed of the runs' schedule.
    seed: of a second schedule, which must give the same bits as the first. alarms: patterns (grep -E) in the
    harness's output. tool: the tool to run under. swept: each runtime call is made to fail in turn. suite:
    only the suite itself can reproduce it.
    """

    runs: tuple[Run, ...]
    judged: tuple[Run, ...] = ()
    same: tuple[Run, ...] = ()
    row: tuple[int, int] | None = None
    schedule: int = 0
    seed: int = 0
    alarms: tuple[str, ...] = ()
    tool: Tool | None = None
    swept: bool = False
    suite: bool = False


Shows = Callable[[Finding, Case, Mapping[str, Run], Mapping[str, Mapping[str, Case]]], Showing]
"""How to reproduce a finding of a case, given the session's native runs by id and all fixtures' cases."""


def by_suite(
    finding: Finding, case: Case, executed: Mapping[str, Run], cases: Mapping[str, Mapping[str, Case]]
) -> Showing:
    """Only the suite can reproduce it; the folder holds the case."""
    return Showing(tuple(_once(case, executed)), suite=True)


def by_matrix(
    finding: Finding, case: Case, executed: Mapping[str, Run], cases: Mapping[str, Mapping[str, Case]]
) -> Showing:
    """For a check whose runs are those of the matrix."""
    if finding.kind == FaultKind.SPLITS:
        return by_suite(finding, case, executed, cases)
    return _plain(finding, case, executed, cases)


def by_session(
    finding: Finding, case: Case, executed: Mapping[str, Run], cases: Mapping[str, Mapping[str, Case]]
) -> Showing:
    """For a check with runs of its own: the run that the finding names, or the runs of its mode."""
    mine = [run for run in executed.values() if run.case is case]
    once = _once(case, executed)
    details = dict(finding.details)
    if finding.where.startswith("pass ") or finding.kind == FaultKind.FAULT_AFTER_ERROR:
        swallowed, broken = (
            r"^@fault .* failed=[^-].* returned=cudaSuccess",
            r"^@fault .* failed=- returned=cudaE",
        )
        return Showing((Run("once", case),), alarms=(swallowed, broken), swept=True)
    if finding.where.startswith("refusal "):
        name = finding.where.removeprefix("refusal ")
        refused = tuple(run for run in executed.values() if run.id.endswith(f".refuse-{name}"))
        if refused:
            return Showing(refused, alarms=("^@refused .* cudaSuccess", "^@launched .* kernels=[1-9]"))
    if (named := executed.get(finding.where.removeprefix("run "))) is not None:
        return _judged([named])
    if "alone" in details:
        return _row(finding, executed)
    if "seed" in details:
        return Showing(tuple(once), same=tuple(once), seed=int(details["seed"]))
    if "mode" in details:
        shown = _judged([run for run in mine if run.mode == details["mode"]] or once)
        racing: Tool | None = "racecheck" if finding.kind.startswith("Race ") else None
        return Showing(shown.runs, shown.judged if racing is None else (), tool=racing)
    return _judged([run for run in mine if run.mode == "repeat"] or once)


def _once(case: Case, executed: Mapping[str, Run]) -> list[Run]:
    """The case's plain run."""
    plain = [run for run in executed.values() if run.case is case and run.mode == "once"]
    return plain[:1] or [Run("once", case)]


def _judged(runs: Iterable[Run]) -> Showing:
    listed = tuple(runs)
    return Showing(listed, judged=listed)


def _plain(
    finding: Finding, case: Case, by_id: Mapping[str, Run], cases: Mapping[str, Mapping[str, Case]]
) -> Showing:
    """The check's own runs of the case, and all preceding ones if the finding needs them."""
    own = runs_for(finding.check, {case.profile: case})
    runs = own
    if CALLS_BEFORE in dict(finding.details):
        every = [run for listed in cases.values() for run in runs_for(finding.check, listed)]
        last = max((i for i, run in enumerate(every) if run.case is case), default=-1)
        runs = tuple(every[: last + 1]) or own
    if finding.check in TOOLS:
        schedule = int(dict(finding.details).get(SCHEDULE, "0"))
        return Showing(runs, schedule=schedule, tool=next(tool for tool in TOOLS if tool == finding.check))
    named = finding.where.removeprefix("run ")
    if named in by_id:
        return _judged([by_id[named]])
    exact = finding.check == "poison" and not case.contract.drift
    return Showing(runs, judged=own, same=own if exact else ())


def _row(finding: Finding, by_id: Mapping[str, Run]) -> Showing:
    """A row alone, compared with its batch if both must have the same bits, else with its own bound."""
    details = dict(finding.details)
    alone = by_id[details["alone"]]
    if "batch" not in details:
        return _judged([alone])
    batch = by_id[details["batch"]]
    assert batch.case.contract.batch is not None
    row = (int(details["row"]), batch.case[batch.case.contract.batch])
    return Showing((batch, alone), same=(batch, alone), row=row)
