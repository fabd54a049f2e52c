"""Temporary folders: whose owner lives stays, what the dead left goes; and paths that a list can hold."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from verify.harness.interposer import build_interposer
from verify.system import scratch
from verify.system.scratch import make_scratch, plain_folder, plain_link, sweep_scratch

OWNER = """
import sys, time
from verify.system.scratch import make_scratch
print(make_scratch(sys.argv[1]), flush=True)
time.sleep(60)
"""


def test_only_folders_of_ended_processes_are_swept(tmp_path: Path) -> None:
    """Fault: folders of killed runs pile up; or those of a run that lives, or anybody else's, are deleted."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, tmp_path], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    (folder / "file").touch()
    other = tmp_path / "verify-of-somebody"
    other.mkdir()
    (tmp_path / "verify-linked").symlink_to(other)
    mine = make_scratch(str(tmp_path))
    sweep_scratch(str(tmp_path))
    assert (folder / "file").exists() and mine.is_dir()
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    sweep_scratch(str(tmp_path))
    assert not folder.exists()
    assert mine.is_dir() and other.is_dir() and (tmp_path / "verify-linked").is_symlink()


@pytest.fixture
def unplain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files whose path a list of paths cannot hold."""
    folder = tmp_path / "a b:c;d $ORIGIN"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr(scratch, "_plain", [])
    return folder


def test_the_loader_accepts_libraries_in_a_cache_of_any_name(
    unplain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a space in the cache's path cuts LD_PRELOAD in two, and the check launch is inconclusive."""
    monkeypatch.setenv("VERIFY_CACHE", str(unplain / "cache"))
    library = build_interposer()
    assert not set(str(library)) & set(" :;$")
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(["/bin/true"], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert ctypes.CDLL(str(library)) is not None
    shutil.rmtree(plain_folder())


def test_a_plain_path_stays_as_it_is(tmp_path: Path) -> None:
    """The twin: no link where none is needed."""
    assert plain_link(tmp_path / "file") == tmp_path / "file"
    assert plain_folder() == Path(tempfile.gettempdir())
