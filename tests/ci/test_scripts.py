"""ci/gate and ci/test: what they refuse, and what they say is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def gate(
    *words: str, python: str = sys.executable, wheels: Path = ROOT / "no-wheels"
) -> subprocess.CompletedProcess[str]:
    # Without the caller's PYTHONPATH: what lies there would count as installed.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [ROOT / "ci" / "gate", *words],
        env={**inherited, "PYTHON": python, "VERIFY_WHEELS": str(wheels)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_system_uses_installed_packages_and_passes_arguments_on() -> None:
    """Fault: a script that installs, or drops its arguments."""
    done = gate("--toolchain", "system", "--help")
    assert done.returncode == 0, done.stderr
    assert "--check" in done.stdout


def test_an_unknown_toolchain_is_a_usage_error() -> None:
    done = gate("--toolchain", "conda")
    assert (done.returncode, done.stderr) == (2, "--toolchain is pip or system, not 'conda'\n")


def test_missing_packages_are_named(tmp_path: Path) -> None:
    """Fault: an ImportError's traceback where a package is missing, and a gate that passes without it."""
    venv.create(tmp_path / "bare", with_pip=False)
    done = gate("--toolchain", "system", python=str(tmp_path / "bare" / "bin" / "python"))
    assert done.returncode == 3
    assert "missing Python packages: numpy mpmath" in done.stderr


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$1" in -c) exit 1 ;; *) echo Python 3.9.2 ;; esac\n')
    old.chmod(0o755)
    done = gate(python=str(old))
    assert done.returncode == 3
    assert "Python 3.9.2; Python 3.11 or later is needed" in done.stderr


@pytest.mark.parametrize("script", ["ci/gate", "ci/lint", "ci/test", ".ci/run"])
def test_scripts_can_be_executed(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
