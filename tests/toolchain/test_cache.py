"""The build cache: an entry is complete, whichever process was killed while building it."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from verify.toolchain import cache, cache_entry
from verify.toolchain.cache import cache_folder, cached, clean_cache, digest, trim_cache

BUILDER = """
import sys, time
from pathlib import Path
from verify.toolchain.cache import cached

def build(folder: Path) -> None:
    (folder / "half").write_text("x")
    Path(sys.argv[1]).open("a").write("built\\n")
    time.sleep(float(sys.argv[2]))
    (folder / "whole").write_text("x")

entry, hit = cached("program", "a" * 32, build)
assert (entry / "whole").exists()
"""


KEY = "a" * 32


def leave() -> None:
    """As the end of a process lets go of what it has used."""
    for held in cache_entry._held.values():
        os.close(held)
    cache_entry._held.clear()


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("VERIFY_CACHE", str(tmp_path / "cache"))
    return tmp_path


def builder(folder: Path, seconds: float) -> subprocess.Popen[bytes]:
    log = folder / "log"
    return subprocess.Popen([sys.executable, "-c", BUILDER, str(log), str(seconds)], cwd=Path.cwd())


def wait_for(path: Path) -> None:
    for _ in range(500):
        if path.exists():
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} did not appear")


def test_several_processes_build_once(folder: Path) -> None:
    """Fault: a compile a worker, and a worker that takes a half-built entry."""
    processes = [builder(folder, 0.5) for _ in range(4)]
    assert [p.wait(60) for p in processes] == [0, 0, 0, 0]
    assert (folder / "log").read_text() == "built\n"


def test_a_killed_build_leaves_no_entry_and_no_lock(folder: Path) -> None:
    """Fault: an entry without its binary after kill -9, or a lock that is never released."""
    doomed = builder(folder, 60)
    wait_for(folder / "log")
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait(60)
    assert not (cache_folder() / "program" / KEY).exists()
    assert builder(folder, 0).wait(60) == 0
    assert (cache_folder() / "program" / KEY / "whole").exists()


def test_a_failed_build_leaves_nothing_and_says_why() -> None:
    """Fault: a failure that is cached, or swallowed."""

    def fails(folder: Path) -> None:
        (folder / "half").touch()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached("program", KEY, fails)
    assert not [p for p in (cache_folder() / "program").iterdir() if p.is_dir()]
    assert cached("program", KEY, lambda folder: None)[1] is False
    assert cached("program", KEY, fails)[1] is True


def thousand(folder: Path) -> None:
    (folder / "x").write_bytes(bytes(1000))


def test_the_least_recently_used_entries_go_first() -> None:
    """Fault: a cache grows without limit, or deletes entries in use."""
    entries = [cached("program", f"{number:032x}", thousand)[0] for number in range(4)]
    size = cache._size(entries[0])
    for number, entry in enumerate(entries):
        os.utime(entry / ".used", (number + 1, number + 1))
    assert trim_cache(limit=0) == 0, "this process uses them"
    leave()
    os.utime(entries[0] / ".used")
    assert trim_cache(limit=2 * size) == 2 * size
    assert [e.exists() for e in entries] == [True, False, False, True]


def test_the_limit_applies_even_if_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: entries of the last hour stay, whatever their size; or only a build looks at the limit."""
    entries = [cached("program", f"{number:032x}", thousand)[0] for number in range(3)]
    leave()
    cache._tidied.clear()
    monkeypatch.setenv("VERIFY_CACHE_BYTES", "0")
    assert cached("program", f"{1:032x}", thousand) == (entries[1], True)
    assert [e.exists() for e in entries] == [False, True, False]


def test_leftovers_of_killed_builds_are_swept() -> None:
    """Fault: the remains of killed builds pile up; or a build that runs now loses its folder."""
    entry, _ = cached("program", KEY, lambda folder: None)
    left = entry.with_name(f"{'b' * 32}.abc.partial")
    (left / "below").mkdir(parents=True)
    with filelock.FileLock(cache_folder() / "locks" / f"program-{'b' * 32}.lock"):
        trim_cache()
        assert left.exists()
    trim_cache()
    assert not left.exists()
    assert entry.exists()


def test_clean_frees_everything() -> None:
    entry, _ = cached("program", KEY, thousand)
    size = cache._size(entry)
    leave()
    assert clean_cache() == size
    assert not entry.exists()


@pytest.mark.parametrize("place", [".", "program", "programs", "locks"])
def test_nothing_else_is_deleted(folder: Path, place: str) -> None:
    """Fault: a folder of the user's in or behind the cache is deleted by clean or by the limit."""
    cached("program", KEY, lambda folder: None)
    leave()
    own = folder / "own"
    own.mkdir()
    (own / "file").touch()
    below = cache_folder() / place
    below.mkdir(exist_ok=True)
    for name in ("mine", "A" * 32, "c" * 31, "c" * 33, "mine.x.partial"):
        (below / name).mkdir()
    for name in ("b" * 32, f"{'b' * 32}.x.partial"):
        (below / name).symlink_to(own)
    (cache_folder() / "harness").symlink_to(below)
    clean_cache()
    trim_cache(limit=0)
    assert (own / "file").exists()
    assert len(list(below.iterdir())) >= 7
    assert not (cache_folder() / "program" / KEY).exists()


def test_a_cache_that_others_may_write_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a binary that anybody could have put there is run. The twin: ours is for us alone, and taken."""
    entry, _ = cached("program", KEY, thousand)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (entry, entry.parent, cache_folder())] == [0o700] * 3
    for place in (entry, entry.parent, cache_folder()):
        place.chmod(0o777)
        with pytest.raises(ValueError, match=r"other users may have written|writable by anybody"):
            cached("program", KEY, thousand)
        place.chmod(0o700)
        assert cached("program", KEY, thousand)[1] is True
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(ValueError, match="another user"):
        cached("program", KEY, thousand)


def damage_missing(entry: Path) -> None:
    (entry / "x").unlink()


def damage_short(entry: Path) -> None:
    (entry / "x").write_bytes(bytes(10))


def damage_bit(entry: Path) -> None:
    (entry / "x").write_bytes(bytes(999) + b"1")


def damage_link(entry: Path) -> None:
    (entry / "x").rename(entry / "y")
    (entry / "x").symlink_to("y")


def damage_list(entry: Path) -> None:
    (entry / ".contents").write_text("[")


def damage_whole(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.symlink_to("/")


def damage_stamp(entry: Path) -> None:
    (entry / ".used").unlink()


@pytest.mark.parametrize(
    "damage",
    [damage_missing, damage_short, damage_bit, damage_link, damage_list, damage_whole, damage_stamp],
)
def test_a_damaged_entry_is_built_again(damage: Callable[[Path], None]) -> None:
    """Fault: a truncated or altered file is run, or blocks its entry for good."""
    entry, _ = cached("program", KEY, thousand)
    damage(entry)
    assert cached("program", KEY, thousand) == (entry, False)
    assert (entry / "x").read_bytes() == bytes(1000)
    assert cached("program", KEY, thousand) == (entry, True)


def test_digests_distinguish_part_boundaries() -> None:
    """Fault: two inputs that give one key because their parts are only joined."""
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["ab", b"c"]) == digest([b"ab", "c"])
