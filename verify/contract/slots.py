"""The scalar slots of a contract: the expressions that a case evaluates, in a fixed order.

The rendered harness refers to slots by number and a case file lists their values, so a fixture can change
every value without a rebuild. Both sides number through :func:`slots_of`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from verify.contract.entries import Global, Launcher
from verify.contract.model import Contract
from verify.contract.symbols import Expression

SM_COUNT = "sm_count"
"""The name of the multiprocessor count in a plan function's ``args``."""

_BYTES = re.compile(r"bytes\(\s*([A-Za-z_]\w*)\s*\)$")


class ArgumentError(ValueError):
    """An argument names nothing in its contract; the message names contract and argument."""


@dataclass(frozen=True)
class Slots:
    """Distinct scalar expressions in order of first use."""

    expressions: tuple[Expression, ...]

    def index(self, expression: Expression) -> int:
        """The slot of an expression. Raises ValueError if no entry uses it."""
        return self.expressions.index(expression)


def argument_kind(contract: Contract, argument: Expression) -> tuple[str, int]:
    """("pointer", buffer index), ("bytes", buffer index), ("stream", 0), ("zero", 0) or ("value", 0).

    "zero" is the number 0, which is a null pointer where the parameter is one. Raises ArgumentError for
    ``bytes(x)`` of an unknown buffer.
    """
    names = [b.name for b in contract.buffers]
    if argument == "stream":
        return "stream", 0
    if isinstance(argument, int) and argument == 0 and not isinstance(argument, bool):
        return "zero", 0
    if argument in names:
        return "pointer", names.index(str(argument))
    if isinstance(argument, str) and (of := _BYTES.match(argument)):
        if of[1] not in names:
            raise ArgumentError(f"{contract.name}: {argument}: there is no buffer {of[1]!r}")
        return "bytes", names.index(of[1])
    return "value", 0


def entry_arguments(entry: Launcher | Global) -> tuple[Expression, ...]:
    """Arguments in call order, or the struct's field values in the order of ``args``."""
    return tuple(entry.args.values()) if not isinstance(entry.args, tuple | list) else tuple(entry.args)


def slots_of(contract: Contract) -> Slots:
    """All scalar expressions of a contract's entries and plan."""
    wanted: list[Expression] = []
    for entry in contract.entries:
        wanted.extend(a for a in entry_arguments(entry) if argument_kind(contract, a)[0] == "value")
        if isinstance(entry, Global):
            wanted.extend([*entry.grid, *entry.block, entry.shared])
    if contract.plan is not None and contract.plan.args is not None:
        wanted.extend(
            a for a in contract.plan.args if a != SM_COUNT and argument_kind(contract, a)[0] == "value"
        )
    return Slots(tuple(dict.fromkeys(wanted)))
