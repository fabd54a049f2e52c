"""Checks the plan itself: the split boundaries must cover the live band exactly once."""

from __future__ import annotations

from collections.abc import Iterator

from verify.case.case import Case
from verify.check.subject import Subject
from verify.finding import Finding


def boundary_findings(subject: Subject, case: Case, repeat: str) -> Iterator[Finding]:
    """A finding for each batch row whose boundaries do not ascend from the band's low edge to its end."""
    plan, batch = case.contract.plan, case.contract.batch
    if plan is None or plan.boundaries is None or batch is None:
        return
    for row in range(case[batch]):
        edges = plan.boundaries(case, row)
        if any(b < a for a, b in zip(edges, edges[1:], strict=False)):
            yield Finding(
                "compare",
                subject.contract.name,
                case.id,
                "split boundaries do not cover the band",
                f"row {row}: edges {edges}",
                "every live position belongs to exactly one split",
                repeat=repeat,
            )
