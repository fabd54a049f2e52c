"""``verify clean``: empties the build cache."""

from __future__ import annotations

from verify.cli.console import out
from verify.toolchain.cache import cache_folder, clean_cache


def clean() -> None:
    """Delete every cached harness and build of the CPU device; the next run rebuilds them."""
    freed = clean_cache()
    out.print(f"{cache_folder()}: freed {freed / 1e6:.1f} MB", highlight=False)
