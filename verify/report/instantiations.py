"""Reports which instantiations of a kernel's templates ran: each is a kernel of its own."""

from __future__ import annotations

from collections.abc import Sequence

from verify.contract.expression import ExpressionError, evaluate
from verify.contract.model import Contract
from verify.finding.finding import Outcome, Verdict
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import FixtureError

MOST_NAMED = 4
"""How many instantiations that did not run are named."""


def fixtures_by_instantiation(
    contract: Contract, fixtures: Sequence[ResolvedFixture]
) -> dict[str, list[str]]:
    """The fixtures that run each instantiation. Raises FixtureError if a condition cannot be evaluated."""
    found: dict[str, list[str]] = {}
    for name, condition in contract.instantiations.items():
        try:
            found[name] = [r.fixture.name for r in fixtures if evaluate(condition, {**r.symbols, **r.plan})]
        except ExpressionError as error:
            raise FixtureError(f"{contract.name}: instantiations: {name}: {error}") from None
    return found


def instantiations_text(by_name: dict[str, list[str]], outcomes: Sequence[Outcome]) -> str:
    """How many ran, and which did not; empty for a contract without instantiations."""
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
    """Inconclusive if no fixture runs some instantiation. fixtures: all of the contract's."""
    unmet = [name for name, runs in by_name.items() if not runs]
    if not unmet or not fixtures:
        return []
    why = (
        f"no fixture runs {', '.join(unmet[:MOST_NAMED])}, one of the contract's "
        "instantiations: add one (a fixture's `over` can cover several)"
    )
    return [Outcome.inconclusive("compare", contract.name, fixtures[0].fixture.name, why)]
