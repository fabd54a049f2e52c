"""Rejects a contract whose fields have the wrong type, before anything reads them.

Python does not check: ``("sm_90")`` is a string, not a tuple, and would be iterated letter by letter, and a
misspelt role would silently match no check.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from verify.contract.model import Contract

_ELSEWHERE: Mapping[str, Any] = {"mpf": Any}
"""Names in annotations that their module imports only for type checkers."""

_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "True or False",
    tuple: "a tuple",
    Mapping: "a dict",
    Callable: "a function",
}


def wrong_types(contract: Contract, path: Path) -> Iterator[str]:
    """One line, with file and field, for each field of the wrong type."""
    yield from _fields(contract, f"{path}")


def _fields(value: Any, at: str) -> Iterator[str]:
    """Check the fields of a dataclass against their annotations, recursively."""
    kind: Any = type(value)
    for name, hint in _declared(kind).items():
        yield from _wrong(getattr(value, name), hint, f"{at}: {name}", at)


@cache
def _declared(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, localns=dict(_ELSEWHERE))


def _wrong(value: Any, hint: Any, field: str, owner: str) -> Iterator[str]:
    """Check one value. owner: the object that has the field, the prefix for named parts of the value."""
    kinds = [kind for kind in _alternatives(hint) if kind is not NoneType]
    kind = next((kind for kind in kinds if _is(value, kind)), None)
    if kind is None:
        if value is None and NoneType in _alternatives(hint):
            return
        comma = f"; a tuple of one has a comma: ({_shown(value)},)" if _outside(kinds[0]) is tuple else ""
        wanted = " or ".join(dict.fromkeys(map(_word, kinds)))
        yield f"{field}: must be {wanted}, is {_shown(value)}{comma}"
    elif _outside(kind) is tuple:
        inside = get_args(kind)
        for number, element in enumerate(value, 1):
            hint = inside[0] if inside[-1] is ... else inside[min(number, len(inside)) - 1]
            yield from _wrong(element, hint, f"{field}: number {number}", owner)
    elif dataclasses.is_dataclass(value):
        name = getattr(value, "name", getattr(value, "function", field.rpartition(": ")[2]))
        yield from _fields(value, f"{owner}: {name}")


def _alternatives(hint: Any) -> list[Any]:
    """The alternatives of a hint: the members of a union, the values of a Literal, or the hint itself."""
    if get_origin(hint) in (Union, UnionType):
        return [kind for member in get_args(hint) for kind in _alternatives(member)]
    return list(get_args(hint)) if get_origin(hint) is Literal else [hint]


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind, without looking at its elements."""
    outside = _outside(kind)
    if isinstance(outside, str):
        return bool(value == outside)
    if outside is Callable:
        return callable(value)
    wider = {tuple: (tuple, list), float: (int, float)}
    return outside is Any or isinstance(value, wider.get(outside, outside))


def _outside(kind: Any) -> Any:
    return get_origin(kind) or kind


def _word(kind: Any) -> str:
    outside = _outside(kind)
    return outside if isinstance(outside, str) else _WORDS.get(outside, f"a {outside.__name__}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__}(...)"
