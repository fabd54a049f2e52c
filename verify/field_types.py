"""Rejects a contract whose fields are not of the type that they must be, before anything reads them.

Python does not ask: ``("sm_90")`` is no tuple but a string, whose letters would be taken one by one, and a
role that is misspelt is silently none that any check looks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from verify.case.profile import Profile
from verify.contract import (
    Buffer,
    Contract,
    DtypeChoice,
    Global,
    Intermediate,
    Launcher,
    OverRead,
    Plan,
    Refusal,
    Role,
    Symbol,
    SymbolKind,
)

_TUPLES: Mapping[type, tuple[str, ...]] = {
    Contract: (
        *("symbols", "buffers", "profiles", "intermediates", "exact", "refusals", "architectures"),
        "nvcc_flags",
    ),
    Symbol: ("choices",),
    Buffer: ("shape", "strides"),
    DtypeChoice: ("choices",),
    Global: ("grid", "block", "args"),
    Plan: ("fields", "args"),
    Intermediate: ("shape",),
    Refusal: ("null",),
}
_TYPES: Mapping[type, Mapping[str, tuple[type, ...]]] = {
    Contract: {
        **dict.fromkeys(("name", "source"), (str,)),
        **dict.fromkeys(("pinned", "captured_at", "row_reads", "parity", "axes"), (Mapping,)),
        "drift": (int, float),
        "batch": (str,),
        "plan": (Plan,),
    },
    Symbol: {"name": (str,), "minimum": (int,), "default": (int, float, str)},
    Buffer: {"name": (str,), "align": (int,), "dtype": (str, DtypeChoice)},
    Launcher: {"function": (str,), "struct": (str,), "args": (tuple, list, Mapping)},
    Global: {"function": (str,), "shared": (int, str)},
    Plan: {"function": (str,), "result": (str,)},
    Intermediate: {"name": (str,), "buffer": (str,), "offset": (int, str)},
    Refusal: {"name": (str,), **dict.fromkeys(("symbols", "misalign", "shrink"), (Mapping,))},
    Profile: {"name": (str,), "pins": (str,)},
}
_FUNCTIONS: Mapping[type, tuple[str, ...]] = {
    Contract: ("reference", "error_model", "observe", "effects", "exact_reference", "locate"),
    Buffer: ("live", "promised"),
    Plan: ("boundaries", "slot"),
}
_WORDS: Mapping[type, Mapping[str, tuple[str, ...]]] = {
    Contract: {"overread": get_args(OverRead)},
    Symbol: {"kind": get_args(SymbolKind)},
    Buffer: {"role": get_args(Role), "overread": get_args(OverRead)},
}
_PARTS: dict[str, tuple[type, ...]] = {
    "symbols": (Symbol, str),
    "buffers": (Buffer,),
    "intermediates": (Intermediate,),
}
_PARTS |= {"refusals": (Refusal,), "profiles": (Profile,), "entry": (Launcher, Global)}


def wrong_types(contract: Contract, path: Path) -> Iterator[str]:
    """One line for each field of another type, with file and field."""
    yield from _of(contract, f"{path}")
    for field, kinds in _PARTS.items():
        value = getattr(contract, field)
        parts = value if isinstance(value, tuple | list) else [value] if field == "entry" else []
        for number, part in enumerate(parts, 1):
            if not isinstance(part, kinds):
                wanted = " or ".join(kind.__name__ for kind in kinds)
                yield f"{path}: {field}: number {number} must be a {wanted}, is {_shown(part)}"
            elif not isinstance(part, str):
                name = getattr(part, "name", getattr(part, "function", ""))
                yield from _of(part, f"{path}: {name}")
    if isinstance(contract.plan, Plan):
        yield from _of(contract.plan, f"{path}: plan")


def _of(part: Any, at: str) -> Iterator[str]:
    """The fields of one value. None is right wherever it is the default."""
    kind = type(part)
    for field in _TUPLES.get(kind, ()):
        value = getattr(part, field)
        if value is not None and not isinstance(value, tuple | list):
            said = _shown(value)
            yield f"{at}: {field}: must be a tuple, is {said}; a tuple of one has a comma: ({said},)"
    for field, types in _TYPES.get(kind, {}).items():
        value = getattr(part, field)
        optional = getattr(kind, field, part) is None
        if (value is None and not optional) or (value is not None and not isinstance(value, types)):
            wanted = " or ".join(_NAMES.get(one, one.__name__) for one in types)
            yield f"{at}: {field}: must be {wanted}, is {_shown(value)}"
    for field in _FUNCTIONS.get(kind, ()):
        value = getattr(part, field)
        if not callable(value) and not (value is None and getattr(kind, field, part) is None):
            yield f"{at}: {field}: must be a function, is {_shown(value)}"
    for field, words in _WORDS.get(kind, {}).items():
        value = getattr(part, field)
        if value not in words and not (value is None and getattr(kind, field, part) is None):
            yield f"{at}: {field}: must be {' or '.join(words)}, is {_shown(value)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__}(...)"


_NAMES: Mapping[type, str] = {
    str: "text",
    int: "an integer",
    float: "a number",
    Mapping: "a dict",
    tuple: "a tuple",
    list: "a list",
    Plan: "a Plan",
    DtypeChoice: "a DtypeChoice",
}
