"""How long work reports where it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with one line, from any thread; the line names the kernel or the file first."""
