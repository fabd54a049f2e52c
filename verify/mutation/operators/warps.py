"""Faults of exchanges inside a warp."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verify.mutation.kinds import Kind
from verify.mutation.operators.code import Change, Code, Operator, replaced

_SHUFFLE = re.compile(r"__shfl(?:_xor|_up|_down)?_sync")
_VOTES = ("__ballot_sync", "__any_sync", "__all_sync", "__reduce_add_sync", "__reduce_max_sync")
HALF = "0x0000ffffu"


def _mask(code: Code) -> Iterator[Change]:
    for call in code.find("call_expression"):
        name, given = code.called(call), code.arguments(call)
        if given and (_SHUFFLE.fullmatch(name) or name in _VOTES) and code.text(given[0]) != HALF:
            yield Change((replaced(given[0], HALF),), f"{name} names half of the warp")


def _width(code: Code) -> Iterator[Change]:
    for call in code.find("call_expression"):
        name, given = code.called(call), code.arguments(call)
        if not _SHUFFLE.fullmatch(name):
            continue
        if len(given) == 3:
            edit = replaced(given[2], f"{code.text(given[2])}, 16")
            yield Change((edit,), f"{name} stays in half of the warp")
        elif len(given) == 4:
            half = f"({code.text(given[3])}) / 2"
            yield Change((replaced(given[3], half),), f"{name} has half of its width")


def _lane(code: Code) -> Iterator[Change]:
    """Another lane's value: one stage of a reduction is done twice, or none."""
    for call in code.find("call_expression"):
        name, given = code.called(call), code.arguments(call)
        if _SHUFFLE.fullmatch(name) and len(given) >= 3:
            half = f"({code.text(given[2])}) / 2"
            yield Change((replaced(given[2], half),), f"{name} goes half as far")
            yield Change((replaced(call, f"({code.text(given[1])})"),), f"{name} gives a lane its own value")


OPERATORS = (
    Operator("shuffle-mask", Kind.WARP, _mask),
    Operator("shuffle-width", Kind.WARP, _width),
    Operator("shuffle-lane", Kind.WARP, _lane),
)
