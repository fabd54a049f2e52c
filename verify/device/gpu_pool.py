"""Who may use which GPU: one process at a time each, by a file lock; a process spreads over several.

Threads of one process share the GPUs that it holds (the sanitizer tools run side by side); another process on
the same machine, such as a second pytest worker, waits. Compilation takes no lease and stays parallel.
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
    """Where the lock files are: one folder a user, shared by every checkout and virtual environment."""
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
    """The GPUs that this process may lease. A lease names the GPU; it is held until the block ends."""

    gpus: Sequence[Gpu]
    directory: Path = field(default_factory=lock_directory)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        # A lease can end on another thread than the one that took the lock.
        self._slots = [
            _Slot(gpu, FileLock(self.directory / f"{gpu.uuid}.lock", thread_local=False)) for gpu in self.gpus
        ]

    @contextmanager
    def lease(self, say: Callable[[str], None] | None = None) -> Iterator[Gpu]:
        """A GPU to work on: a free one if there is one, else the least used of those this process holds.

        say: told once when the wait for other processes gets long.
        """
        slot = self._take(say)
        try:
            yield slot.gpu
        finally:
            with self._changed:
                slot.users -= 1
                if slot.users == 0:
                    slot.lock.release()
                self._changed.notify_all()

    def _take(self, say: Callable[[str], None] | None) -> _Slot:
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
                if say is not None and time.monotonic() > patience:
                    say("waiting for another process to leave the GPU")
                    say = None
                # Another process holds the rest: its release is not announced here, so look again soon.
                self._changed.wait(POLL_SECONDS)
