"""Substitutes another source for a kernel's own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from verify.contract.discovery import source_file
from verify.contract.model import Contract
from verify.toolchain.cache import cached, digest


def with_source(contract: Contract, text: str) -> Contract:
    """The contract of a kernel with another source, which is stored in the build cache.

    In the cache, since a harness's key includes the path of its source: so the same source compiles once.
    Files that the source includes from its folder are still found.
    """
    original = source_file(contract).absolute()

    def write(folder: Path) -> None:
        (folder / original.name).write_text(text, encoding="utf-8")

    folder, _ = cached("mutant", digest([original.name, text]), write)
    beside = f"-I{original.parent}"
    return dataclasses.replace(
        contract, source=str(folder / original.name), nvcc_flags=(*contract.nvcc_flags, beside)
    )
