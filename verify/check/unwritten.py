"""Reports an output as unwritten only if two fills show it: a wrong value may equal one fill by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from verify.check.judge import judge_output, like_before
from verify.check.subject import Ran, Subject
from verify.finding.finding import Finding
from verify.oracle.expectation import Quantity


def judge_run(
    subject: Subject, check: str, ran: Ran, expected: Mapping[str, Quantity], repeat: str
) -> list[Finding]:
    """All findings of one run (:func:`verify.check.judge.judge_output`).

    If elements still have their fill, the run is repeated with another fill only in the outputs.
    """
    assert ran.output is not None
    suspected = like_before(ran.run.case, ran.output, expected)
    if not any(mask.any() for mask in suspected.values()):
        return judge_output(check, ran.run, ran.output, expected, repeat, unwritten={})
    fills = replace(ran.run.fills, output="huge" if ran.run.fills.output == "zero" else "zero")
    again = replace(ran.run, id=f"{ran.run.id}.{fills.output}-output", fills=fills)
    other = subject.execute([again])[again.id].output
    confirmed: dict[str, np.ndarray] = {}
    if other is not None:
        # Also where the second fill is a right value, which may be zero.
        seen = like_before(ran.run.case, other, expected, right_too=True)
        confirmed = {name: mask & seen[name] for name, mask in suspected.items() if name in seen}
    return judge_output(check, ran.run, ran.output, expected, repeat, unwritten=confirmed)
