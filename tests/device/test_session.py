"""The session runner: no run is lost, whatever the harness process does. Harnesses here are small scripts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from verify.device.interface import Job, RunResult, RunStatus
from verify.device.session import Command, Session, run_session
from verify.system.process_group import descendants

PRELUDE = """
import os, signal, subprocess, sys, time
out = sys.argv[1]
def begin(run): print("@begin", run, flush=True)
def done(run, kernels=1):
    print("@launched", run, f"kernels={kernels}", flush=True)
    open(os.path.join(out, run + ".out"), "w").write(run)
    print("@done", run, flush=True)
"""


def session(
    tmp_path: Path,
    body: str,
    runs: Sequence[str] = ("a", "b", "c"),
    timeout: float = 20,
    skip: Callable[[str, Mapping[str, RunResult]], str] = lambda run, ends: "",
    **more: Any,
) -> Session:
    """A session over a harness whose body is Python; ``wanted`` are the runs that it is asked for."""
    script = tmp_path / "harness.py"
    script.write_text(f"{PRELUDE}\nwanted = sys.argv[2:]\n{body}")
    job = Job(script, tmp_path / "pack", runs, tmp_path / "out", timeout=timeout, skip=skip, **more)

    def command(index: int, pending: Sequence[str]) -> Command:
        return Command((sys.executable, str(script), str(job.out), *pending), os.environ)

    return run_session(job, command)


def statuses(done: Session) -> list[RunStatus]:
    return [result.status for result in done.results.values()]


def test_all_runs_of_a_good_harness_are_done_in_one_process(tmp_path: Path) -> None:
    """Fault: a process for each run, or outputs and launch counts not collected."""
    ended = session(tmp_path, "for r in wanted: begin(r); done(r, 2)")
    assert statuses(ended) == [RunStatus.DONE] * 3
    assert len(ended.processes) == 1
    assert all(r.kernels == 2 and r.output is not None and r.output.is_file() for r in ended.results.values())


def test_a_crash_is_charged_to_the_current_run_and_the_rest_continues(tmp_path: Path) -> None:
    """Fault: the crash takes the others with it, or is charged to a neighbour."""
    ended = session(
        tmp_path,
        "for r in wanted:\n begin(r)\n if r == 'b': os.kill(os.getpid(), signal.SIGSEGV)\n done(r)",
    )
    assert statuses(ended) == [RunStatus.DONE, RunStatus.FAULT, RunStatus.DONE]
    assert "SIGSEGV" in ended.results["b"].error
    assert [p.settled for p in ended.processes] == [("a", "b"), ("c",)]


def test_a_hang_is_killed_at_its_own_limit_and_the_rest_continues(tmp_path: Path) -> None:
    """Fault: a hung kernel blocks the gate, or the limit counts from the start of the process."""
    body = "for r in wanted:\n begin(r)\n time.sleep(60 if r == 'b' else 0.4)\n done(r)"
    ended = session(tmp_path, body, ("a", "b", "c"), timeout=1)
    assert statuses(ended) == [RunStatus.DONE, RunStatus.TIMEOUT, RunStatus.DONE]
    assert "1 s" in ended.results["b"].error


def test_runs_to_be_skipped_after_a_hang_are_skipped(tmp_path: Path) -> None:
    """Fault: each run of a fixture that never ends waits the whole limit; or other fixtures are lost too."""

    def skip(run: str, ends: Mapping[str, RunResult]) -> str:
        return f"{run} as x1" if run[0] == "x" and "x1" in ends else ""

    body = "for r in wanted:\n begin(r)\n time.sleep(60 if r[0] == 'x' else 0)\n done(r)"
    runs = ("x1", "y1", "x2", "y2", "x3")
    ended = session(tmp_path, body, runs, timeout=1, skip=skip)
    left = RunStatus.LEFT_OUT
    assert statuses(ended) == [RunStatus.TIMEOUT, RunStatus.DONE, left, RunStatus.DONE, left]
    assert ended.results["x2"].error == "x2 as x1"
    assert len(ended.processes) == 2


def test_no_process_is_started_if_every_run_is_skipped(tmp_path: Path) -> None:
    """Fault: a process for each job of a kernel that is known to hang."""
    ended = session(tmp_path, "for r in wanted: begin(r); done(r)", skip=lambda run, ends: "no")
    assert statuses(ended) == [RunStatus.LEFT_OUT] * 3
    assert not ended.processes


def test_a_silent_run_is_abandoned_once_its_fixture_has_hung(tmp_path: Path) -> None:
    """Fault: a tool waits its own, longer limit in a kernel that has hung without it meanwhile."""
    asked: list[str] = []

    def skip(run: str, ends: Mapping[str, RunResult]) -> str:
        if run != "b" or ends:
            return ""
        asked.append(run)
        return "it hung natively" if len(asked) > 2 else ""

    body = "for r in wanted:\n begin(r)\n time.sleep(600 if r == 'b' else 0)\n done(r)"
    ended = session(tmp_path, body, timeout=500, skip=skip)
    assert statuses(ended) == [RunStatus.DONE, RunStatus.LEFT_OUT, RunStatus.DONE]
    assert ended.results["b"].error == "it hung natively"


def test_a_runs_limit_follows_from_earlier_runs(tmp_path: Path) -> None:
    """Fault: a hang waits the whole limit, though runs of the same build have taken a blink."""
    shown: dict[str, float] = {}

    def limit(run: str) -> float:
        assert set(shown) <= {"a", "b"}
        return 1.5 if shown else inf

    body = "for r in wanted:\n begin(r)\n time.sleep(600 if r == 'c' else 0.2)\n done(r)"
    ended = session(tmp_path, body, timeout=500, limit=limit, took=shown.__setitem__)
    assert statuses(ended) == [RunStatus.DONE, RunStatus.DONE, RunStatus.TIMEOUT]
    assert ended.results["c"].error == "no end within 1.5 s"
    assert set(shown) == {"a", "b"} and min(shown.values()) > 0


def test_results_of_another_process_shorten_a_wait(tmp_path: Path) -> None:
    """Fault: the first run of a process hangs, and what its neighbours find out comes too late for it."""
    asked: list[str] = []

    def limit(run: str) -> float:
        asked.append(run)
        return inf if len(asked) < 3 else 2.0

    ended = session(tmp_path, "begin('a'); time.sleep(600)", ("a",), timeout=500, limit=limit)
    assert ended.results["a"].error == "no end within 2 s"


def test_after_a_hang_the_other_runs_have_a_shorter_limit(tmp_path: Path) -> None:
    """Fault: a kernel that hangs in every fixture costs the whole limit each time."""
    body = "for r in wanted:\n begin(r)\n time.sleep(0 if r == 'b' else 600)\n done(r)"
    ended = session(tmp_path, body, timeout=9)
    assert statuses(ended) == [RunStatus.TIMEOUT, RunStatus.DONE, RunStatus.TIMEOUT]
    assert [ended.results[run].error for run in "ac"] == ["no end within 9 s", "no end within 1.5 s"]


def test_children_of_a_hung_process_are_killed_too(tmp_path: Path) -> None:
    """Fault: the program under the tool lives on, holding the GPU, also when it left the process group."""
    note = tmp_path / "child"
    body = (
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "begin(wanted[0])\ntime.sleep(60)"
    )
    session(tmp_path, body, ("a",), timeout=0.5)
    child = Path("/proc") / note.read_text()
    for _ in range(50):
        if not child.exists():
            break
        time.sleep(0.05)
    assert not child.exists()


def test_an_error_marker_settles_its_run_and_the_process_goes_on(tmp_path: Path) -> None:
    """Fault: an error that the harness survived is lost, or ends the runs behind it."""
    body = "for r in wanted:\n begin(r)\n print('@error b cudaErrorX: y') if r == 'b' else done(r)"
    ended = session(tmp_path, body)
    assert statuses(ended) == [RunStatus.DONE, RunStatus.FAULT, RunStatus.DONE]
    assert ended.results["b"].error == "cudaErrorX: y"
    assert len(ended.processes) == 1


def test_missing_memory_is_no_fault_of_the_kernel(tmp_path: Path) -> None:
    """Fault: a device that is too small turns into a finding."""
    text = "no memory: needs 9123456789 bytes of device memory, 4000000000 are free"
    body = f"begin('a'); print('@error a {text}')"
    ended = session(tmp_path, body, ("a",))
    assert statuses(ended) == [RunStatus.REFUSED_MEMORY]
    assert ended.results["a"].error == "needs 9.1 GB of device memory, 4.0 GB are free"


def test_done_without_an_output_file_is_a_fault(tmp_path: Path) -> None:
    """Fault: a stale or absent output passes for a result."""
    ended = session(tmp_path, "begin('a'); print('@done a')", ("a",))
    assert statuses(ended) == [RunStatus.FAULT]


def test_a_rejected_call_is_done_with_the_name_of_its_error(tmp_path: Path) -> None:
    """Fault: the error that a launcher returned does not reach the check."""
    ended = session(tmp_path, "begin('a'); print('@refused a cudaErrorInvalidValue'); done('a', 0)", ("a",))
    assert ended.results["a"].status is RunStatus.DONE
    assert ended.results["a"].error == "cudaErrorInvalidValue"
    assert ended.results["a"].kernels == 0


def test_a_harness_that_begins_no_run_is_tried_twice(tmp_path: Path) -> None:
    """Fault: an endless loop of processes, or runs without an end when the program cannot start."""
    ended = session(tmp_path, "print('no such symbol', file=sys.stderr); sys.exit(127)")
    assert statuses(ended) == [RunStatus.NOT_RUN] * 3
    assert len(ended.processes) == 2
    assert "no such symbol" in ended.results["a"].error


def test_a_program_that_does_not_exist_leaves_its_runs_not_run(tmp_path: Path) -> None:
    """Fault: an exception in place of a verdict."""
    job = Job(tmp_path / "absent", tmp_path / "pack", ["a"], tmp_path / "out")
    ended = run_session(job, lambda _, runs: Command((str(job.binary), *runs), os.environ))
    assert statuses(ended) == [RunStatus.NOT_RUN]
    assert "cannot start" in ended.results["a"].error


def test_output_of_the_kernel_is_not_mistaken_for_markers(tmp_path: Path) -> None:
    """Fault: a kernel's printf without an end of line hides a marker, or forges one for another run."""
    body = "begin('a')\nprint('@done nobody')\nprint('half a line ', end='')\ndone('a')"
    ended = session(tmp_path, body, ("a",))
    assert statuses(ended) == [RunStatus.DONE]
    assert ended.processes[0].tail[0] == "@done nobody"


def test_descendants_follow_children_of_children() -> None:
    """Fault: only direct children are ended."""
    nested = subprocess.Popen(["sh", "-c", "sh -c 'sleep 30; true'; true"], start_new_session=True)
    try:
        for _ in range(100):
            if len(descendants(nested.pid)) >= 2:
                break
            time.sleep(0.02)
        assert len(descendants(nested.pid)) >= 2
    finally:
        os.killpg(nested.pid, 9)
        nested.wait()
