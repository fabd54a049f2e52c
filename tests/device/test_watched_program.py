"""What a program starts, leaves behind and dies of: whatever the checks cannot have seen is not clean."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verify.check.program import ProgramReport, run_program
from verify.cli.program import conclude, summary
from verify.device import watched_program
from verify.device.elf import ProgramFile
from verify.device.program import ProgramOptions, compile_program
from verify.device.watched_program import _escaped

SOURCE = Path(__file__).parent / "programs/starts_others.cu"


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, built."""
    return compile_program(SOURCE, "sm_90")


def run(program: Path, *arguments: str, **options: object) -> ProgramReport:
    """The program's verdict with these arguments."""
    chosen = ProgramOptions(**options)  # type: ignore[arg-type]
    return run_program(
        [str(program), *arguments], chosen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.parametrize(
    "command",
    ['env -i "$PROGRAM"', "env -u LD_LIBRARY_PATH $PROGRAM", '(env -i "$PROGRAM" sleep & sleep 0.5) && true'],
    ids=["no environment", "no library path", "in the background"],
)
def test_child_without_the_environment_is_not_verified(program: Path, command: str) -> None:
    """Fault: a child uses the system's CUDA runtime, and its parent's clean report counts for both."""
    result = run(program, "shell", command)
    assert result.exit_code == 3
    assert "ran outside of the CPU device" in result.reason
    assert summary(result).startswith("NOT VERIFIED: the program started")


def test_child_in_the_same_environment_is_verified(program: Path) -> None:
    """Fault: any child of a program voids its verdict."""
    result = run(program, "shell", '"$PROGRAM" && ls / && exec "$PROGRAM"')
    assert (result.exit_code, result.reason) == (0, "")
    assert result.report is not None
    assert result.report.launches == 3


def test_child_with_a_runtime_of_its_own_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a statically linked child of a verified parent counts as verified."""
    static = ProgramFile(("libc.so.6",), False, b"device code", False)
    monkeypatch.setattr(watched_program, "_facts", lambda _: static)
    (tmp_path / "7.json.loaded").write_text("/bin/other\n")
    assert "its own copy of the CUDA runtime" in _escaped([(7, Path("/bin/sh"))], tmp_path)
    (tmp_path / "7.json.loaded").write_text("/bin/other\n/bin/sh\n")
    assert _escaped([(7, Path("/bin/sh"))], tmp_path) == ""


def test_daemon_that_can_use_cuda_is_not_verified(program: Path) -> None:
    """Fault: a process that outlives the program, and whose report is not awaited, is ignored."""
    result = run(program, "shell", 'setsid "$PROGRAM" sleep > /dev/null & true')
    assert result.exit_code == 3
    assert "was still running 2 s after its end" in result.reason


def test_other_daemons_are_killed_with_a_note(program: Path) -> None:
    """Fault: a daemon without CUDA voids the verdict, or is left running, or is killed without a note."""
    became_sleep = "until grep -q sleep /proc/$!/comm; do sleep 0.01; done"
    result = run(program, "shell", f"setsid sleep 30 > /dev/null & {became_sleep}")
    assert (result.exit_code, result.reason) == (0, "")
    assert [note.split()[2] for note in result.notes] == ["(sleep)"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.notes[0].split()[1]), 0)


def test_program_that_execs_another_is_not_verified(program: Path) -> None:
    """Fault: ``exec`` drops the findings of the program that called it."""
    for other in ("/bin/true", str(program)):
        result = run(program, "become", other)
        assert result.exit_code == 3
        assert "before its report" in result.reason


def test_program_killed_by_a_signal_is_cut_short(program: Path, tmp_path: Path) -> None:
    """Fault: the log of a run that a signal ended closes as that of a whole one, with 0 errors."""
    log = tmp_path / "log"
    result = run(program, "signal", str(signal.SIGTERM.value), log_file=log)
    assert conclude(result, None, log) == 128 + signal.SIGTERM
    text = log.read_text()
    assert "Cut short by SIGTERM" in text
    assert "NOT VERIFIED: cut short by SIGTERM" in text.splitlines()[-1]
    assert "0 errors" not in text


def test_log_of_an_ended_command_says_so(program: Path, tmp_path: Path) -> None:
    """Fault: ``timeout`` ends the suite and the program together, and the log looks whole."""
    log = tmp_path / "log"
    words = ["sanitize", "--device", "cpu", "--log-file", str(log), "--", str(program), "sleep"]
    command = subprocess.Popen(
        [sys.executable, "-m", "verify", *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + 60
    while not log.exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(command.pid, signal.SIGTERM)
    _, said = command.communicate(timeout=30)
    assert command.returncode == 128 + signal.SIGTERM
    assert "terminated by SIGTERM before a verdict" in said
    assert "without a summary below, the run was cut short" in log.read_text()
    assert "ERROR SUMMARY" not in log.read_text() + said


def test_tool_none_only_runs_the_program(program: Path) -> None:
    """Fault: a failed call is a finding though nothing was to be checked, or is none where it was."""
    plain = run(program, "fail a call", tools=())
    assert (plain.exit_code, summary(plain)) == (0, "NOT CHECKED: --tool none only runs the program")
    checked = run(program, "fail a call")
    assert (checked.exit_code, summary(checked)) == (1, "ERROR SUMMARY: 1 error")


def test_kernel_name_that_matches_no_kernel_is_not_verified(program: Path) -> None:
    """Fault: a misspelt ``--kernel-name`` filters out every finding and passes."""
    assert run(program, kernel_name="fil").exit_code == 0
    result = run(program, kernel_name="filll")
    assert result.exit_code == 3
    assert "no kernel that ran matches this name (fill(float*))" in result.reason


def test_device_as_log_stays_and_a_full_one_is_reported(program: Path, tmp_path: Path) -> None:
    """Fault: the log's place is deleted first, be it a device; or a report that could not be
    written is lost."""
    full = Path("/dev/full")
    before = full.stat()
    result = run(program, log_file=full)
    assert (result.exit_code, result.reason) == (3, "--log-file /dev/full: No space left on device")
    assert conclude(result, None, full) == 3
    assert (full.stat().st_ino, full.stat().st_rdev) == (before.st_ino, before.st_rdev)
    log = tmp_path / "log"
    log.write_text("of an earlier run\n")
    assert conclude(run(program, log_file=log), None, log) == 0
    lines = log.read_text().splitlines()
    assert "CPU device: running" in lines[0]
    assert lines[-1] == "========= ERROR SUMMARY: 0 errors"
