"""Text from outside, made safe to print."""

from __future__ import annotations

import pytest

from verify.system.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, naïve, 中文\ttext\n", "plain, naïve, 中文\ttext\n"),
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("a\rb\x9bc\u202ed", r"a\rb\x9bc\u202ed"),
        ("\ud800", r"\ud800"),
        ("::error file=a::b", r"\::error file=a::b"),
        ("one\n  ##[error]two\n##vso[task]", "one\n  \\##[error]two\n\\##vso[task]"),
        ("std::vector ::x", "std::vector ::x"),
        ("## heading", "## heading"),
    ],
)
def test_text_cannot_control_a_terminal_or_a_ci_log(text: str, shown: str) -> None:
    """Fault: a name clears the screen or raises an error in a hosted CI's log; or plain text is altered."""
    assert printable(text) == shown
