"""The callback with which long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with one line, from any thread; the line names the kernel or the file first."""
