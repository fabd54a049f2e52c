"""Checks the plan itself: its fields are as promised, and its splits cover the live band exactly once."""

from __future__ import annotations

from collections.abc import Iterator

from verify.check.subject import Subject
from verify.contract.model import Case
from verify.finding.finding import Finding
from verify.finding.kind import FaultKind


def boundary_findings(subject: Subject, case: Case, repeat: str) -> Iterator[Finding]:
    """A finding for each batch row whose boundaries do not ascend."""
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
                FaultKind.SPLITS,
                f"row {row}: edges {edges}",
                "every live position belongs to exactly one split",
                repeat=repeat,
            )


def field_findings(subject: Subject, case: Case, repeat: str) -> Iterator[Finding]:
    """A finding for each plan field that differs from the contract's expression for it."""
    plan = case.contract.plan
    for name, expression in plan.promised.items() if plan is not None else ():
        promised = case.evaluate(expression)
        if case.plan[name] != promised:
            yield Finding(
                "compare",
                subject.contract.name,
                case.id,
                FaultKind.PLAN_FIELD,
                f"{name} = {case.plan[name]}",
                f"{name} = {expression}, which is {promised}",
                where=f"plan field {name}",
                repeat=repeat,
            )
