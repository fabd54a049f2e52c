"""The build cache: finished directories, each named by a digest of all inputs of its build.

An entry is built in a temporary directory and renamed into place, so it is complete even if a process is
killed. One file lock per key makes concurrent processes wait for one build instead of repeating it; the lock
dies with its holder. Each entry lists its files with their digests; if one differs, the entry is rebuilt.

Binaries from the cache are executed, so nothing that another user could have written is accepted. Only paths
with the place and name of an entry are ever deleted, and no link is followed on the way.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import filelock

from verify.toolchain.cache_entry import CONTENTS, STAMP, contents_of, is_hit, state_lock, usable_folder

DEFAULT_LIMIT_BYTES = 4 << 30
"""Least recently used entries are deleted beyond this size; VERIFY_CACHE_BYTES sets another limit."""

KINDS = (
    *("core", "harness", "interposer", "machine", "machine-object", "machine-program", "program"),
    *("sanitizer", "tripwire", "unpacked", "fake-runtime", "host-reader", "known-programs", "mutant"),
)
"""Folders of the cache. Anything else in it is left alone."""

_ENTRY = re.compile(r"[0-9a-f]{32}")
_PARTIAL = re.compile(r"([0-9a-f]{32})\.\w+\.partial")

_tidied: set[Path] = set()


def cache_folder() -> Path:
    """The cache's folder: VERIFY_CACHE, else ``kernel-verify`` in the user's cache folder."""
    named = os.environ.get("VERIFY_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(base) if base else Path(os.environ.get("HOME", tempfile.gettempdir())) / ".cache"
    return home.absolute() / "kernel-verify"


def digest(parts: Iterable[str | bytes]) -> str:
    """A key of 32 hexadecimal digits; part boundaries count."""
    state = hashlib.sha256()
    for part in parts:
        data = os.fsencode(part) if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()[:32]


def cached(kind: str, key: str, build: Callable[[Path], None]) -> tuple[Path, bool]:
    """The finished directory of ``key``, and whether it existed already.

    kind: one of KINDS. build: fills an empty directory; what it raises propagates, and leaves no entry.
    The entry is kept while this process runs. Raises ValueError if the cache cannot be used or trusted.
    """
    assert kind in KINDS and _ENTRY.fullmatch(key), (kind, key)
    limit = limit_bytes()  # report a wrong setting at once, not when the cache is next trimmed
    root = usable_folder(cache_folder())
    folder, locks = usable_folder(root / kind), usable_folder(root / "locks")
    entry = folder / key
    with state_lock:
        first = root not in _tidied
        _tidied.add(root)
    if is_hit(entry):
        if first:
            trim_cache(entry, limit)
        return entry, True
    with filelock.FileLock(locks / f"{kind}-{key}.lock"):
        if is_hit(entry):
            return entry, True
        for left in folder.glob(f"{key}.*.partial"):  # the lock's holder is the only builder
            _delete(left)
        if os.path.lexists(entry):
            _set_aside(entry)
        partial = Path(tempfile.mkdtemp(prefix=f"{key}.", suffix=".partial", dir=folder))
        try:
            build(partial)
            (partial / CONTENTS).write_text(json.dumps(contents_of(partial)))
            (partial / STAMP).touch()
            partial.rename(entry)
        except BaseException:
            _delete(partial)
            raise
        if not is_hit(entry):
            raise ValueError(f"{entry}: files changed while being built: set VERIFY_CACHE to another folder")
    trim_cache(entry, limit)
    return entry, False


def is_cached(kind: str, key: str) -> bool:
    """Whether the entry exists."""
    return (cache_folder() / kind / key).is_dir()


def limit_bytes() -> int:
    """VERIFY_CACHE_BYTES, or the default. Raises ValueError for anything but a number of bytes."""
    text = os.environ.get("VERIFY_CACHE_BYTES", str(DEFAULT_LIMIT_BYTES))
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ValueError(f"VERIFY_CACHE_BYTES: must be a number of bytes, is {text[:40]!r}")
    return int(text)


def trim_cache(keep: Path | None = None, limit: int | None = None) -> int:
    """Delete least recently used entries until the cache fits its limit; returns the bytes freed.

    Entries used by a running process stay, and so does ``keep``. Leftovers of killed builds are deleted.
    """
    if limit is None:
        limit = limit_bytes()
    _delete_partials()
    entries = sorted(_entries())
    total = sum(size for _, size, _ in entries)
    freed = 0
    for _, size, path in entries:
        if total - freed <= limit:
            break
        if path != keep and _remove(path):
            freed += size
    return freed


def clean_cache() -> int:
    """Delete every entry that no running process uses; returns the bytes freed."""
    _delete_partials()
    return sum(size for _, size, path in _entries() if _remove(path))


def _kinds() -> Iterator[Path]:
    """The folders that hold entries, except links and other users' folders."""
    root = cache_folder()
    for kind in KINDS:
        if _is_own_folder(root / kind):
            yield root / kind


def _entries() -> Iterator[tuple[float, int, Path]]:
    """(last use, bytes, path) of every finished entry."""
    for kind in _kinds():
        for name in os.listdir(kind):
            entry = kind / name
            if _ENTRY.fullmatch(name) and _is_own_folder(entry):
                with contextlib.suppress(OSError):
                    yield _last_use(entry), _size(entry), entry


def _last_use(entry: Path) -> float:
    try:
        return os.lstat(entry / STAMP).st_mtime
    except OSError:
        return entry.lstat().st_mtime


def _is_own_folder(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _size(folder: Path | str) -> int:
    with os.scandir(folder) as files:
        return sum(
            _size(f.path) if f.is_dir(follow_symlinks=False) else f.stat(follow_symlinks=False).st_size
            for f in files
        )


def _remove(entry: Path) -> bool:
    """Delete an entry unless a process builds or uses it; returns whether it was deleted."""
    with _key_lock(entry.parent.name, entry.name) as free:
        if not free:
            return False
        with contextlib.suppress(FileNotFoundError), open(entry / STAMP, "rb") as stamp:
            try:
                fcntl.flock(stamp, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            _set_aside(entry)
            return True
        _set_aside(entry)  # without its stamp, no process can use it
        return True


def _set_aside(entry: Path) -> None:
    """Delete an entry, renamed first so that no process sees half of it."""
    doomed = entry.with_name(f"{entry.name}.{os.getpid()}.partial")
    with contextlib.suppress(OSError):
        entry.rename(doomed)
        _delete(doomed)


def _delete(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _delete_partials() -> None:
    """Delete the leftovers of killed builds and removals: those whose locks are free."""
    for kind in _kinds():
        for left in kind.iterdir():
            found = _PARTIAL.fullmatch(left.name)
            if found is not None and _is_own_folder(left):
                with _key_lock(kind.name, found[1]) as free:
                    if free:
                        _delete(left)


@contextlib.contextmanager
def _key_lock(kind: str, key: str) -> Iterator[bool]:
    """Try to take the lock of one key, without waiting; yields whether it was free."""
    lock = filelock.FileLock(cache_folder() / "locks" / f"{kind}-{key}.lock", timeout=0)
    try:
        lock.acquire()
    except (filelock.Timeout, OSError):
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
