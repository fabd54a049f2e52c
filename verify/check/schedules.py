"""Schedules: the same runs under other seeds on the CPU device, which must give the same bits."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

import numpy as np

from verify.check.drift import beyond_drift, promise_of
from verify.check.judge import coordinates
from verify.check.subject import Ran, Subject
from verify.device.cpu import SEED
from verify.device.interface import RunStatus
from verify.finding.finding import Finding
from verify.finding.kind import FaultKind
from verify.wire.output import RunOutput, read_output
from verify.wire.run import Run

SEEDS = (1, 2, 3)
"""Schedules in addition to the default (seed 0): other orders of blocks, warps and the lanes of an atomic."""

FURTHER_SEEDS = (4, 5, 6, 7, 8)
"""Tried too if a kernel has atomics: two orders of a float sum often give the same bits."""

_ORDERS = "in whatever order blocks, warps and atomics run"


def under_seeds(subject: Subject, runs: Sequence[Run], usual: Mapping[str, Ran]) -> dict[int, dict[str, Ran]]:
    """The runs under other schedules, by seed. usual: their results under seed 0, by id."""
    seeded, atomics = {}, False
    for seed in range(1, subject.seeds) if subject.seeds else SEEDS:
        seeded[seed], used_atomics = _under_seed(subject, runs, usual, seed)
        atomics = atomics or used_atomics
    if atomics and not subject.seeds:
        seeded |= {seed: _under_seed(subject, runs, usual, seed)[0] for seed in FURTHER_SEEDS}
    return seeded


def _under_seed(
    subject: Subject, runs: Sequence[Run], usual: Mapping[str, Ran], seed: int
) -> tuple[dict[str, Ran], bool]:
    """The runs in one process, and whether an atomic was executed."""
    execution = subject.start(runs, f"schedule-{seed}", options={SEED: str(seed)})
    ran = {}
    for run in runs:
        result = execution.results[run.id]
        ended = result.status is RunStatus.DONE and result.output is not None
        output = read_output(result.output, run.case) if ended and result.output is not None else None
        ran[run.id] = Ran(run, result, _shared(output, usual[run.id].output))
    shutil.rmtree(execution.job.out, ignore_errors=True)
    return ran, execution.counters.get("by_class", {}).get("atomic", 0) > 0


def _shared(output: RunOutput | None, usual: RunOutput | None) -> RunOutput | None:
    """Replace an output by the usual one if they are equal, since hundreds of schedules would fill memory."""
    if output is None or usual is None:
        return output
    same = all(array.tobytes() == usual.outputs[name].tobytes() for name, array in output.outputs.items())
    return usual if same else output


def schedule_findings(subject: Subject, usual: Ran, others: Mapping[int, Ran], repeat: str) -> list[Finding]:
    """A finding for each output that differs under some seed from the default schedule's, by more than the
    contract's drift.
    """
    findings = []
    assert usual.output is not None
    case, promise = usual.run.case, promise_of(subject, _ORDERS)
    for seed, other in others.items():
        assert other.output is not None
        for name, first in usual.output.outputs.items():
            differs = beyond_drift(subject, case, name, first, other.output.outputs[name])
            if differs.any():
                at = tuple(int(i) for i in np.argwhere(differs)[0])
                findings.append(
                    Finding(
                        "determinism",
                        subject.contract.name,
                        case.id,
                        FaultKind.SCHEDULE,
                        f"{int(differs.sum())} of {differs.size} elements of {name} have other bits under "
                        f"seed {seed} than under seed 0; first at {list(at)}",
                        promise,
                        where=coordinates(case, name, at),
                        repeat=repeat,
                        details=(("seed", str(seed)),),
                    )
                )
    return findings
