"""Temporary folders, each locked by its owner, so that the next run deletes what a killed one left."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path

PREFIX = "verify-"
PLAIN = re.compile(r"[\w.+@%=/-]+")
"""A path that shells, compilers and the loader treat as one word."""

_LOCK = ".owner"
_held: list[int] = []
_plain: list[Path] = []


def make_scratch(below: str | None = None) -> Path:
    """Create a folder in ``below``, by default the system's temporary folder, owned by this process."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=below))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(folder / _LOCK), os.fstat(lock)):
                _held.append(lock)
                return folder
        os.close(lock)  # another process's sweep deleted it first


def sweep_scratch(below: str | None = None) -> None:
    """Delete this user's scratch folders whose owner has ended."""
    place = below or tempfile.gettempdir()
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        mine = [
            entry.path
            for entry in entries
            if entry.name.startswith(PREFIX)
            and entry.is_dir(follow_symlinks=False)
            and entry.stat(follow_symlinks=False).st_uid == os.getuid()
        ]
        for folder in mine:
            with contextlib.suppress(OSError):
                lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_NOFOLLOW)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(lock)


def plain_folder() -> Path:
    """The system's temporary folder, or, if its path needs quoting, a scratch folder whose path does not."""
    usual = tempfile.gettempdir()
    if PLAIN.fullmatch(usual):
        return Path(usual)
    if not _plain:
        for place in ("/tmp", "/var/tmp", "/dev/shm"):
            if os.access(place, os.W_OK | os.X_OK):
                sweep_scratch(place)
                _plain.append(make_scratch(place))
                atexit.register(shutil.rmtree, _plain[0], ignore_errors=True)
                break
        else:
            raise OSError(f"the temporary folder {usual!r} needs quoting: set TMPDIR to a plain path")
    return _plain[0]


def plain_link(file: Path) -> Path:
    """A path of ``file`` that the loader treats as one word, through a link to its folder where necessary."""
    if PLAIN.fullmatch(str(file.parent)):
        return file
    link = plain_folder() / f"linked-{os.getpid()}-{abs(hash(file.parent)):x}"
    with contextlib.suppress(FileExistsError):
        link.symlink_to(file.parent)
    return link / file.name
