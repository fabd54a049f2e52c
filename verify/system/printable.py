"""Makes text from outside (names, messages, compilers, programs) safe to print."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except tab and newline, bidirectional overrides, and lone surrogates."""

_COMMAND = re.compile(r"^(\s*)(::|##)(?=\w|\[)", re.MULTILINE)
"""The start of a line that a hosted CI would execute as a command: ``::error``, ``##[error]``, ``##vso[``."""


def printable(text: str) -> str:
    r"""The text with control characters escaped (``\x1b``), and with no line that a CI would execute."""
    spelled = _CONTROL.sub(lambda m: m[0].encode("unicode_escape", "surrogatepass").decode(), text)
    return _COMMAND.sub(r"\1\\\2", spelled)
