"""An output is called unwritten only when two fills agree: a wrong value may equal one of them by chance."""

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

    Elements that still hold their fill are looked at again: the run is repeated with another fill in the
    outputs alone.
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
        # Whatever it was filled with: a right value may look like the second fill, as a zero does.
        seen = like_before(ran.run.case, other, expected, right_too=True)
        confirmed = {name: mask & seen[name] for name, mask in suspected.items() if name in seen}
    return judge_output(check, ran.run, ran.output, expected, repeat, unwritten=confirmed)
