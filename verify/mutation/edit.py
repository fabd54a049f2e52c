"""Edits of a source, in bytes, and what they look like."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """The bytes ``start`` to ``end`` of a source become ``text``."""

    start: int
    end: int
    text: str


def apply(source: bytes, edits: Iterable[Edit]) -> bytes:
    """The source with all edits made. Raises ValueError for two that overlap."""
    result, last = source, len(source) + 1
    for edit in sorted(edits, reverse=True):
        if edit.end > last:
            raise ValueError(f"edits overlap at byte {edit.end}")
        result = result[: edit.start] + edit.text.encode() + result[edit.end :]
        last = edit.start
    return result


def diff(before: str, after: str, name: str, context: int = 1) -> str:
    """A unified diff of two sources."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", n=context, lineterm=""
    )
    return "\n".join(lines)


def changed_range(before: bytes, after: bytes) -> tuple[int, int]:
    """The bytes of ``before`` outside which both are alike: (start, end)."""
    start = 0
    for ours, theirs in zip(before, after, strict=False):
        if ours != theirs:
            break
        start += 1
    alike = 0
    most = min(len(before), len(after)) - start
    while alike < most and before[-1 - alike] == after[-1 - alike]:
        alike += 1
    return start, len(before) - alike
