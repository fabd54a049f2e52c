"""Schedules: on the CPU device the same runs under other seeds, whose outputs must be the same bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from verify.case.pack import read_output
from verify.case.run import Run
from verify.check.judge import coordinates
from verify.check.subject import Ran, Subject
from verify.device.interface import RunStatus
from verify.finding import Finding

SEEDS = (1, 2, 3)
"""Schedules beside the usual one (seed 0): other orders of blocks and warps, other ends of async copies."""

_PROMISE = "the same inputs give the same bits in whatever order blocks and warps run"


def under_seed(subject: Subject, runs: Sequence[Run], seed: int) -> dict[str, Ran]:
    """The runs under another schedule, in one process."""
    execution = subject.start(runs, f"schedule-{seed}", options={"seed": str(seed)})
    ran = {}
    for run in runs:
        result = execution.results[run.id]
        ended = result.status is RunStatus.DONE and result.output is not None
        output = read_output(result.output, run.case) if ended and result.output is not None else None
        ran[run.id] = Ran(run, result, output)
    return ran


def schedule_findings(subject: Subject, usual: Ran, others: Mapping[int, Ran], repeat: str) -> list[Finding]:
    """A finding for each output that differs from the usual schedule's under some seed."""
    findings = []
    assert usual.output is not None
    for seed, other in others.items():
        assert other.output is not None
        for name, first in usual.output.outputs.items():
            differs = (first != other.output.outputs[name]) & usual.run.case.live(name)
            if differs.any():
                at = tuple(int(i) for i in np.argwhere(differs)[0])
                findings.append(
                    Finding(
                        "determinism",
                        subject.contract.name,
                        usual.run.case.id,
                        "depends on the schedule",
                        f"{int(differs.sum())} of {differs.size} elements of {name} have other bits under "
                        f"seed {seed} than under seed 0; first at {list(at)}",
                        _PROMISE,
                        where=coordinates(usual.run.case, name, at),
                        repeat=repeat,
                        details=(("seed", str(seed)),),
                    )
                )
    return findings
