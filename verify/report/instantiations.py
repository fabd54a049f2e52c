"""Which instantiations of a kernel's templates ran: each is a kernel of its own, with faults of its own."""

from __future__ import annotations

from collections.abc import Sequence

from verify.contract.expression import ExpressionError, evaluate
from verify.contract.model import Contract
from verify.finding.finding import Outcome, Verdict
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import FixtureError

MOST_NAMED = 4
"""Of those that did not run."""


def fixtures_by_instantiation(
    contract: Contract, fixtures: Sequence[ResolvedFixture]
) -> dict[str, list[str]]:
    """The fixtures that run each instantiation. Raises FixtureError for a condition without a value."""
    found: dict[str, list[str]] = {}
    for name, condition in contract.instantiations.items():
        try:
            found[name] = [r.fixture.name for r in fixtures if evaluate(condition, {**r.symbols, **r.plan})]
        except ExpressionError as error:
            raise FixtureError(f"{contract.name}: instantiations: {name}: {error}") from None
    return found


def instantiations_text(by_name: dict[str, list[str]], outcomes: Sequence[Outcome]) -> str:
    """How many ran, and which did not; nothing for a contract that names none."""
    if not by_name:
        return ""
    ran = {o.fixture for o in outcomes if o.verdict is not Verdict.NOT_RUN}
    missed = [name for name, fixtures in by_name.items() if not ran.intersection(fixtures)]
    text = f"{len(by_name) - len(missed)} of {len(by_name)} ran"
    if not missed:
        return text
    more = f" and {len(missed) - MOST_NAMED} more" if len(missed) > MOST_NAMED else ""
    return f"{text}; not {', '.join(missed[:MOST_NAMED])}{more}"


def unmet_instantiations(
    contract: Contract, by_name: dict[str, list[str]], fixtures: Sequence[ResolvedFixture]
) -> list[Outcome]:
    """No verdict for a kernel part of which no fixture runs. fixtures: all that the contract has."""
    unmet = [name for name, runs in by_name.items() if not runs]
    if not unmet or not fixtures:
        return []
    why = (
        f"no fixture runs {', '.join(unmet[:MOST_NAMED])}, which the contract names among its "
        "instantiations: add one (a fixture's `over` runs it over several)"
    )
    return [Outcome.inconclusive("compare", contract.name, fixtures[0].fixture.name, why)]
