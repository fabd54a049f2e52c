"""Leases GPUs: a file lock gives each GPU to one process at a time; a process may hold several.

Threads of one process share its GPUs (the sanitizer tools run concurrently); another process on the same
machine, such as a second pytest worker, waits. Compilation needs no lease and stays parallel.
"""

from __future__ import annotations

import getpass
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from verify.device.cuda_probe import Gpu

POLL_SECONDS = 0.05
SILENT_SECONDS = 2.0


def lock_directory() -> Path:
    """The folder of the lock files: one per user, shared by all checkouts and virtual environments."""
    folder = Path(tempfile.gettempdir()) / f"kernel-verify-{getpass.getuser()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@dataclass
class _Slot:
    gpu: Gpu
    lock: FileLock
    users: int = 0


@dataclass
class GpuPool:
    """The GPUs that this process may lease."""

    gpus: Sequence[Gpu]
    directory: Path = field(default_factory=lock_directory)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        # A lease may end on a different thread from the one that acquired the lock.
        self._slots = [
            _Slot(gpu, FileLock(self.directory / f"{gpu.uuid}.lock", thread_local=False)) for gpu in self.gpus
        ]

    @contextmanager
    def lease(self, progress: Callable[[str], None] | None = None) -> Iterator[Gpu]:
        """Lease a GPU until the block ends: a free one if any, else the least used of this process's.

        progress: called once if the wait for other processes becomes long.
        """
        slot = self._acquire(progress)
        try:
            yield slot.gpu
        finally:
            with self._changed:
                slot.users -= 1
                if slot.users == 0:
                    slot.lock.release()
                self._changed.notify_all()

    def _acquire(self, progress: Callable[[str], None] | None) -> _Slot:
        patience = time.monotonic() + SILENT_SECONDS
        with self._changed:
            while True:
                for slot in (s for s in self._slots if s.users == 0):
                    try:
                        slot.lock.acquire(timeout=0)
                    except Timeout:
                        continue
                    slot.users = 1
                    return slot
                held = [s for s in self._slots if s.users > 0]
                if held:
                    slot = min(held, key=lambda s: s.users)
                    slot.users += 1
                    return slot
                if progress is not None and time.monotonic() > patience:
                    progress("waiting for another process to release the GPU")
                    progress = None
                # Other processes hold the rest, and their release is not signalled here: poll.
                self._changed.wait(POLL_SECONDS)
