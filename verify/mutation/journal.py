"""Results on disk, one per line, written as they come, so that a killed campaign continues where it was.

A result is stored under a key of all that it depends on, so only what has changed is tried again. The last
line of a killed campaign may be incomplete; it is ignored.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from verify.contract.discovery import fixture_file, source_file
from verify.contract.model import Contract
from verify.device.interface import Device
from verify.mutation.mutant import Mutant, Result
from verify.system.resources import resource_folder
from verify.toolchain.cache import digest
from verify.toolchain.toolchain import find_toolchain

FILE = "results.jsonl"


class Journal:
    """The results of a folder. Several threads may write; two campaigns may share a folder."""

    def __init__(self, folder: Path) -> None:
        """Read the existing results. Raises OSError if the folder cannot be created or read."""
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / FILE
        self._lock = threading.Lock()
        self._rows = dict(_rows(self.file))

    def result(self, key: str, mutant: Mutant) -> Result | None:
        """The result of a mutant; None if it has not been tried."""
        row = self._rows.get(key)
        try:
            return Result.from_json({**row, "kernel": mutant.kernel, "mutant": mutant.name}) if row else None
        except (KeyError, TypeError, ValueError):
            return None

    def is_clean(self, key: str) -> bool:
        """Whether the right kernel of a key is known to be clean."""
        return self._rows.get(key, {}).get("clean") is True

    def write(self, key: str, result: Result) -> None:
        """Store a result, on disk before this returns."""
        self._append({"key": key, **result.as_json()})

    def write_clean(self, key: str) -> None:
        """Record that an original kernel is clean."""
        self._append({"key": key, "clean": True})

    def _append(self, row: dict[str, Any]) -> None:
        with self._lock:
            self._rows[row["key"]] = row
            # One write, starting with a newline, so that it never joins an incomplete line.
            target = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(target, f"\n{json.dumps(row)}\n".encode())
                os.fsync(target)
            finally:
                os.close(target)


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not file.exists():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("key"), str):
            yield row["key"], row


def context_of(contract: Contract, device: Device, architecture: str | None, suite: str) -> str:
    """What a result of one kernel depends on beside the mutant. suite: :func:`suite_digest`."""
    info = device.info()
    # What stands beside a user's kernel may be included by it or imported by its contract.
    beside = [contract.file, source_file(contract), fixture_file(contract)]
    for folder in dict.fromkeys(f.parent for f in beside):
        beside += sorted(
            f for f in folder.iterdir() if f.suffix in (".h", ".hpp", ".cuh", ".cu", ".py", ".toml")
        )
    files = [part for f in dict.fromkeys(beside) for part in (str(f.name), f.read_bytes())]
    devices = (device.name, architecture or "", *sorted(info.versions.values()))
    return digest([suite, find_toolchain().identity, *devices, *files])


def key_of(context: str, mutant: Mutant, every: bool) -> str:
    """The key of a mutant's result."""
    promised = (*mutant.checks, "", *mutant.gpu, "", *mutant.cpu, "", *mutant.devices, "")
    return digest([context, mutant.source, str(every), *promised, mutant.finding, mutant.equivalent])


def suite_digest() -> str:
    """A digest of the suite itself: its package, the harness's templates and the CPU device."""
    package = Path(__file__).parents[1]
    folders: Sequence[Path] = (package, resource_folder("harness_templates"), resource_folder("machine"))
    files = sorted(f for folder in folders for f in folder.rglob("*") if f.is_file())
    kept = [
        f for f in files if f.suffix in (".py", ".toml", ".cu", ".cuh", ".hpp", ".cpp", ".h", ".j2", ".inc")
    ]
    return digest([part for f in kept for part in (f.name, f.read_bytes())])
