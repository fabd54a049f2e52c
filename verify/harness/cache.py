"""The build cache: finished directories, named by a digest of everything that went into them.

An entry is built in a directory of its own and renamed into place, so what has its name is whole, whenever a
process is killed. A file lock a key makes several processes wait for one build instead of repeating it; the
lock dies with its holder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import filelock

DEFAULT_LIMIT_BYTES = 4 << 30
"""Least recently used entries go when the cache grows past this; VERIFY_CACHE_BYTES sets another limit."""

_STAMP = ".used"
_PARTIAL_HOURS = 24


def cache_folder() -> Path:
    """Where entries are: VERIFY_CACHE, else ``kernel-verify`` in the user's cache folder."""
    named = os.environ.get("VERIFY_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(base) if base else Path(os.environ.get("HOME", tempfile.gettempdir())) / ".cache"
    return home.absolute() / "kernel-verify"


def digest(parts: Iterable[str | bytes]) -> str:
    """A key of 32 hexadecimal digits; a byte that moves from one part to the next changes it."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()[:32]


def cached(kind: str, key: str, build: Callable[[Path], None]) -> tuple[Path, bool]:
    """The finished directory of ``key``, and whether it was there already.

    kind: a short name that entries of one sort share (``harness``, ``machine``). build: fills an empty
    directory; what it raises is passed on, and no entry is left.
    """
    limit_bytes()  # a wrong setting is told at once, not when the cache is next trimmed
    root = cache_folder()
    entry = root / kind / key
    if _hit(entry):
        return entry, True
    try:
        (root / kind).mkdir(parents=True, exist_ok=True)
        (root / "locks").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"the build cache {root} cannot be used ({error.strerror}): set VERIFY_CACHE"
        ) from None
    with filelock.FileLock(root / "locks" / f"{kind}-{key}.lock"):
        if _hit(entry):
            return entry, True
        partial = Path(tempfile.mkdtemp(prefix=f"{key}.", suffix=".partial", dir=root / kind))
        try:
            build(partial)
            partial.chmod(0o755)
            (partial / _STAMP).touch()
            partial.rename(entry)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    trim_cache(keep=entry)
    return entry, False


def is_cached(kind: str, key: str) -> bool:
    """Whether the entry is there."""
    return (cache_folder() / kind / key).is_dir()


def _hit(entry: Path) -> bool:
    """Whether the entry is there; its stamp then says that it was used now."""
    if not entry.is_dir():
        return False
    with contextlib.suppress(OSError):
        (entry / _STAMP).touch()
    return True


def limit_bytes() -> int:
    """VERIFY_CACHE_BYTES, or the default. Raises ValueError for anything but a number of bytes."""
    text = os.environ.get("VERIFY_CACHE_BYTES", str(DEFAULT_LIMIT_BYTES))
    if not text.isdecimal():
        raise ValueError(f"VERIFY_CACHE_BYTES: must be a number of bytes, is {text!r}")
    return int(text)


def trim_cache(keep: Path | None = None, limit: int | None = None) -> int:
    """Delete least recently used entries until the cache fits its limit; bytes freed.

    Entries used within the last hour stay, since another process may be running them.
    """
    if limit is None:
        limit = limit_bytes()
    entries = sorted(_entries(), key=lambda item: item[0])
    total = sum(size for _, size, _ in entries)
    freed = 0
    for used, size, path in entries:
        stale_partial = path.name.endswith(".partial") and time.time() - used > 3600 * _PARTIAL_HOURS
        too_much = total - freed > limit and path != keep and time.time() - used > 3600
        if stale_partial or (too_much and not path.name.endswith(".partial")):
            _remove(path)
            freed += size
    return freed


def clean_cache() -> int:
    """Delete every entry; bytes freed. Builds that run meanwhile finish into an empty cache."""
    freed = 0
    for _, size, path in _entries():
        _remove(path)
        freed += size
    return freed


def _entries() -> list[tuple[float, int, Path]]:
    """(last use, bytes, path) of every entry, unfinished ones included."""
    found = []
    for kind in cache_folder().glob("*/"):
        if kind.name == "locks":
            continue
        for entry in kind.glob("*/"):
            with contextlib.suppress(OSError):
                stamp = entry / _STAMP
                used = (stamp if stamp.exists() else entry).stat().st_mtime
                found.append((used, _size(entry), entry))
    return found


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _remove(entry: Path) -> None:
    """Move the entry aside first, so that nobody meets half of it."""
    doomed = entry.with_name(f"{entry.name}.{os.getpid()}.partial")
    with contextlib.suppress(OSError):
        entry.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
