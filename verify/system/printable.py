"""Text from outside (names, messages, compilers, programs) as it may be shown: it steers nothing."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but tab and newline, what turns the direction of writing, and halves of surrogates."""

_COMMAND = re.compile(r"^(\s*)(::|##)(?=\w|\[)", re.MULTILINE)
"""How a line begins that the log of a hosted CI obeys: ``::error``, ``##[error]``, ``##vso[``."""


def printable(text: str) -> str:
    r"""The text with control characters spelled (``\x1b``), and no line that a CI's log would obey."""
    spelled = _CONTROL.sub(lambda m: m[0].encode("unicode_escape", "surrogatepass").decode(), text)
    return _COMMAND.sub(r"\1\\\2", spelled)
