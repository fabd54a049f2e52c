"""Finds the guards of a launcher in its source, and makes each one removable at run time.

A guard is a condition under which a host function of the source gives up: ``if (A || B) return error;`` in
a function that returns ``cudaError_t``, and what it is made of. An ``||`` falls apart into its parts, and so
do a ``!(A && B)``, a ``bool`` that was set to ``A && B`` before, and a ``bool f() { return A && B; }`` that a
guard asks. One build holds all ablations: each part is wrapped so that the environment variable
``VERIFY_ABLATED``, the part's number, takes it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

VARIABLE = "VERIFY_ABLATED"

_SWITCH = f"""
#include <cstdlib>
static bool verify_guard_ablated(int guard) {{
  const char* const text = std::getenv("{VARIABLE}");
  return text != nullptr && *text != 0 && std::atoi(text) == guard;
}}
"""

_FUNCTION = re.compile(r"(?:^|\n)(?:extern \"C\" )?(cudaError_t|bool) (\w+)\(")
_NAME = re.compile(r"!?\s*([A-Za-z_]\w*)(\(.*\))?", re.DOTALL)


@dataclass(frozen=True)
class Guard:
    """One part of a condition, at ``start`` to ``end`` of the source. function: the one that it stands in.

    refuses: it is the part's truth that refuses (``n < 1``); otherwise its falsehood does (``n >= 1``).
    """

    function: str
    text: str
    start: int
    end: int
    refuses: bool

    @property
    def name(self) -> str:
        """For a test's id and a message."""
        return f"{self.function}: {' '.join(self.text.split())}"


def guards_of(source: str) -> list[Guard]:
    """All guards of a source, in order."""
    text = _without_comments(source)
    functions = {name: (kind, start, end) for kind, name, start, end in _functions(text)}
    found: dict[int, Guard] = {}
    asked: set[str] = set()

    def part(function: str, start: int, end: int, refuses: bool) -> None:
        """Follow a part of a condition down to what it is made of."""
        while text[start].isspace():
            start += 1
        while text[end - 1].isspace():
            end -= 1
        inner = text[start:end]
        if inner.startswith("!(") and _closing(text, start + 1) == end - 1:
            return parts(function, start + 2, end - 1, not refuses)
        if inner.startswith("(") and _closing(text, start) == end - 1:
            return parts(function, start + 1, end - 1, refuses)
        named = _NAME.fullmatch(inner)
        if named is not None:
            negated = inner.startswith("!")
            _, begin, stop = functions[function]
            local = re.search(rf"const bool {named[1]} = ([^;]*);", text[begin:stop])
            if local is not None and named[2] is None:
                return parts(function, begin + local.start(1), begin + local.end(1), refuses != negated)
            if named[2] is not None and functions.get(named[1], ("",))[0] == "bool":
                asks(named[1], refuses != negated)
        found[start] = Guard(function, inner, start, end, refuses)

    def parts(function: str, start: int, end: int, refuses: bool) -> None:
        """Any part of an ``||`` makes it true, any part of an ``&&`` makes it false; others stay whole."""
        for first, last in _split(text, start, end, "||" if refuses else "&&"):
            part(function, first, last, refuses)

    def asks(function: str, refuses: bool) -> None:
        """A function of truth values that a guard asks: where it returns, and where it gives up early."""
        if function in asked:
            return
        asked.add(function)
        _, begin, stop = functions[function]
        for match in re.finditer(r"\breturn ([^;]*);", text[begin:stop]):
            if match[1] not in ("true", "false"):
                parts(function, begin + match.start(1), begin + match.end(1), refuses)
        for first, last, value in _returning_ifs(text, begin, stop):
            if value == ("true" if refuses else "false"):
                parts(function, first, last, True)

    for name, (kind, begin, stop) in functions.items():
        if kind == "cudaError_t":
            for first, last, value in _returning_ifs(text, begin, stop):
                if value != "cudaSuccess":
                    parts(name, first, last, True)
    # A part that holds others (a call whose function was followed) stays as well: both are guards.
    return [found[start] for start in sorted(found)]


def switchable(source: str, guards: list[Guard]) -> str:
    """The source with every guard under the switch."""
    for number in reversed(range(len(guards))):
        guard = guards[number]
        inside = (
            f"(verify_guard_ablated({number}) ? {'false' if guard.refuses else 'true'} : bool({guard.text}))"
        )
        source = source[: guard.start] + inside + source[guard.end :]
    return _SWITCH + source


def _functions(text: str) -> Iterator[tuple[str, str, int, int]]:
    """(result, name, begin and end of the body) of host functions that return an error or a truth value."""
    for match in _FUNCTION.finditer(text):
        after = _closing(text, match.end() - 1) + 1
        if text[after:].lstrip().startswith("{"):
            begin = text.index("{", after)
            yield match[1], match[2], begin, _closing(text, begin)


def _returning_ifs(text: str, begin: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Begin and end of each condition behind which a function returns, and what it returns."""
    for match in re.finditer(r"\bif \(", text[begin:stop]):
        opening = begin + match.end() - 1
        closing = _closing(text, opening)
        then = re.match(r"\s*(?:\{\s*)?return ([^;]*);", text[closing + 1 : stop])
        if then is not None:
            yield opening + 1, closing, then[1]


def _split(text: str, start: int, end: int, operator: str) -> Iterator[tuple[int, int]]:
    """The operands of ``operator`` outside all parentheses. Empty when a weaker operator stands there."""
    places, at = [], start
    while at < end:
        if text[at] == "(":
            at = _closing(text, at)
        elif text[at : at + 2] == ("||" if operator == "&&" else "&&"):
            if operator == "&&":
                yield start, end
                return
            at += 1
        elif text[at : at + 2] == operator:
            places.append(at)
            at += 1
        at += 1
    yield from zip([start, *(p + 2 for p in places)], [*places, end], strict=True)


def _closing(text: str, opening: int) -> int:
    """Where the bracket at ``opening`` is closed."""
    pairs = {"(": ")", "{": "}"}
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == text[opening]) - (text[at] == pairs[text[opening]])
        if depth == 0:
            return at
    raise ValueError(f"a {text[opening]!r} is not closed")


def _without_comments(source: str) -> str:
    """The source with comments blanked, so that places in it stay where they are."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), source, flags=re.DOTALL)
