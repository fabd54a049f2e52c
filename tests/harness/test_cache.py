"""The build cache: what has an entry's name is whole, whoever was killed while making it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verify.harness.cache import cache_folder, cached, clean_cache, digest, trim_cache

BUILDER = """
import sys, time
from pathlib import Path
from verify.harness.cache import cached

def build(folder: Path) -> None:
    (folder / "half").write_text("x")
    Path(sys.argv[1]).open("a").write("built\\n")
    time.sleep(float(sys.argv[2]))
    (folder / "whole").write_text("x")

entry, hit = cached("kind", "key", build)
assert (entry / "whole").exists()
"""


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
    """Catches a compile a worker, and a worker that takes a half-built entry."""
    processes = [builder(folder, 0.5) for _ in range(4)]
    assert [p.wait(60) for p in processes] == [0, 0, 0, 0]
    assert (folder / "log").read_text() == "built\n"


def test_a_killed_build_leaves_no_entry_and_no_lock(folder: Path) -> None:
    """Catches an entry without its binary after kill -9, and a lock that nobody will ever give back."""
    doomed = builder(folder, 60)
    wait_for(folder / "log")
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait(60)
    assert not (cache_folder() / "kind" / "key").exists()
    assert builder(folder, 0).wait(60) == 0
    assert (cache_folder() / "kind" / "key" / "whole").exists()


def test_a_failed_build_leaves_nothing_and_says_why() -> None:
    """Catches a failure that is cached, or swallowed."""

    def fails(folder: Path) -> None:
        (folder / "half").touch()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached("kind", "key", fails)
    assert not [p for p in (cache_folder() / "kind").iterdir() if p.is_dir()]
    assert cached("kind", "key", lambda folder: None)[1] is False
    assert cached("kind", "key", fails)[1] is True


def test_the_least_recently_used_entries_go_first() -> None:
    """Catches a cache that grows for ever, or that drops what is in use."""
    entries = []
    for number in range(4):
        entry, _ = cached(
            "kind", f"key{number}", lambda folder: (folder / "x").write_bytes(bytes(1000)) and None
        )
        entries.append(entry)
        old = time.time() - 7200 + number
        os.utime(entry / ".used", (old, old))
    os.utime(entries[0] / ".used")
    assert trim_cache(limit=2500) == 2000
    assert [e.exists() for e in entries] == [True, False, False, True]


def test_unfinished_entries_of_yesterday_are_swept() -> None:
    """Catches the remains of killed builds piling up."""
    entry, _ = cached("kind", "key", lambda folder: None)
    left = entry.with_name("other.abc.partial")
    left.mkdir()
    (left / "x").write_bytes(bytes(10))
    trim_cache()
    assert left.exists(), "it may be a build that runs now"
    os.utime(left, (1, 1))
    trim_cache()
    assert not left.exists()
    assert entry.exists()


def test_clean_frees_everything() -> None:
    cached("kind", "key", lambda folder: (folder / "x").write_bytes(bytes(1000)) and None)
    assert clean_cache() == 1000
    assert not (cache_folder() / "kind" / "key").exists()


def test_digests_tell_parts_apart() -> None:
    """Catches two inputs that give one key because their parts are only joined."""
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["ab", b"c"]) == digest([b"ab", "c"])
