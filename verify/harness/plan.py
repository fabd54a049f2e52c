"""Queries a launcher's plan through the harness binary: on the host, without a launch, many at a time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from verify.contract.expression import evaluate, names_in
from verify.contract.model import Contract
from verify.contract.slots import slots_of
from verify.contract.symbols import Expression
from verify.harness.build import Build
from verify.wire.pack import value_text

_TIMEOUT_SECONDS = 60.0


class PlanError(RuntimeError):
    """The plan could not be queried; the message says why."""


def query_plans(
    build: Build, contract: Contract, requests: Sequence[Mapping[str, Any]], sm_count: int
) -> list[dict[str, int]]:
    """The plan for each mapping of symbol values, in order.

    During the query, buffers are placeholders of unlimited size, and an argument that depends on the plan
    itself is 0. A request that the plan function rejects gives an empty mapping. Raises PlanError if the
    query fails.
    """
    if contract.plan is None or not requests:
        return [{} for _ in requests]
    answers = ask_plans(build, contract, requests, sm_count)
    return [
        {name: int(answer[name]) for name in contract.plan.fields} if answer["error"] == "cudaSuccess" else {}
        for answer in answers
    ]


def require_plans(
    build: Build, contract: Contract, requests: Sequence[Mapping[str, Any]], sm_count: int
) -> list[dict[str, int]]:
    """Like :func:`query_plans`, but raises PlanError, naming the symbols, for a rejected request."""
    plans = query_plans(build, contract, requests, sm_count)
    for request, plan in zip(requests, plans, strict=True):
        if contract.plan is not None and not plan:
            given = ", ".join(f"{name}={value}" for name, value in request.items())
            raise PlanError(f"{contract.name}: {contract.plan.function} rejects {given}")
    return plans


def ask_plans(
    build: Build, contract: Contract, requests: Sequence[Mapping[str, Any]], sm_count: int
) -> list[dict[str, Any]]:
    """The harness's answers: the plan's fields, and under ``error`` the name of the returned status."""
    plan = contract.plan
    assert plan is not None
    slots = slots_of(contract).expressions
    lines = []
    for number, request in enumerate(requests):
        values = [value_text(_value(e, request), f"{contract.name}: {e}") for e in slots]
        nulls = [
            str(i)
            for i, b in enumerate(contract.buffers)
            if b.given is not None and not _value(b.given, request)
        ]
        lines.append(" ".join([str(number), str(sm_count), ",".join(nulls) or "-", *values]))
    try:
        done = subprocess.run(
            [str(build.binary), "plan"],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            env=build.toolchain.run_environment(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlanError(f"{contract.name}: the plan cannot be queried: {error}") from None
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(answers) != len(requests):
        why = done.stderr.strip() or f"exit code {done.returncode}"
        raise PlanError(f"{contract.name}: the plan cannot be queried: {why}")
    return answers


def _value(expression: Expression, symbols: Mapping[str, Any]) -> Any:
    """The value of an expression over a request's symbols; 0 if it uses plan fields."""
    if isinstance(expression, str) and not names_in(expression) <= symbols.keys():
        return 0
    return evaluate(expression, symbols)
