"""One entry of the build cache: whether it is trusted and intact, and its hold by this process."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterable
from pathlib import Path

STAMP, CONTENTS = ".used", ".contents"
state_lock = threading.Lock()
_held: dict[Path, int] = {}
_known: dict[Path, list[tuple[object, ...]]] = {}


def usable_folder(folder: Path) -> Path:
    """Return the folder, created if missing. Raises ValueError if others may have written its contents."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        link, status = folder.lstat(), folder.stat()
    except OSError as error:
        raise ValueError(
            f"the build cache {folder} cannot be used ({error.strerror}): set VERIFY_CACHE"
        ) from None
    if link.st_uid not in (os.geteuid(), 0) or status.st_uid != os.geteuid():
        raise ValueError(f"the build cache {folder} belongs to another user: set VERIFY_CACHE")
    if status.st_mode & stat.S_IWOTH:
        raise ValueError(f"the build cache {folder} is writable by anybody: chmod o-w, or set VERIFY_CACHE")
    return folder


def is_hit(entry: Path) -> bool:
    """Whether the entry exists and is intact; if so, it is held for this process and its last use is now.

    Raises ValueError if others may have written it.
    """
    try:
        status = entry.lstat()
    except OSError:
        return False
    if status.st_uid != os.geteuid() or (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IWOTH):
        raise ValueError(f"{entry}: other users may have written it: delete it, or set VERIFY_CACHE")
    if not stat.S_ISDIR(status.st_mode) or not _hold(entry):
        return False
    return _is_whole(entry)


def _hold(entry: Path) -> bool:
    """Keep the entry from being trimmed while this process runs; False if it is being removed right now."""
    stamp = entry / STAMP
    with state_lock, contextlib.suppress(OSError):
        if entry not in _held or not _is_open_at(_held[entry], stamp):
            held = os.open(stamp, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if not _is_open_at(held, stamp):
                    raise FileNotFoundError
            except OSError:
                os.close(held)
                raise
            if entry in _held:
                os.close(_held[entry])
            _held[entry] = held
        with contextlib.suppress(OSError):
            os.utime(_held[entry])
        return True
    return False


def _is_open_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False


def _is_whole(entry: Path) -> bool:
    """Whether the entry's files are those that were built; they are read once, and again when changed."""
    try:
        listed = json.loads((entry / CONTENTS).read_text())
        seen = [(name, *_look(entry / name)) for name in sorted(listed)]
        if _known.get(entry) == seen:
            return True
        whole = bool(contents_of(entry, sorted(listed)) == listed)
    except (OSError, ValueError, TypeError, AttributeError):
        return False
    if whole:
        _known[entry] = seen
    return whole


def _look(file: Path) -> tuple[int, ...]:
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
        raise ValueError(f"{file}: not a file that this entry's build made")
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode


def contents_of(folder: Path, names: Iterable[str] | None = None) -> dict[str, str]:
    """Digests of a folder's files by name."""
    if names is None:
        files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
        names = sorted(str(f.relative_to(folder)) for f in files if f.name not in (STAMP, CONTENTS))
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
