"""Exit code 0 comes with a whole report and 1 with findings, whatever a contract or a pipe does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.signals import take_interrupts

EXAMPLE = Path(__file__).parents[2] / "examples" / "row_softmax"
LIST = (sys.executable, "-m", "verify", "list", "kernel", "--json")


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    """The example's contract, in a folder of its own that commands run beside."""
    shutil.copytree(EXAMPLE, tmp_path / "kernel")
    return tmp_path / "kernel" / "row_softmax_contract.py"


def begin(contract: Path, lines: str) -> None:
    contract.write_text(f"{lines}\n{contract.read_text()}")


def listed(contract: Path, **how: object) -> subprocess.CompletedProcess[str]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.run(  # type: ignore[call-overload]
        LIST, cwd=contract.parents[1], text=True, timeout=60, check=False, **streams
    )


def test_a_temporary_folder_set_by_a_contract_is_kept(contract: Path, tmp_path: Path) -> None:
    """Fault: the command deletes what tempfile.tempdir names, which a contract has set to a user's folder."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "kept").touch()
    begin(
        contract,
        "import tempfile, threading, time\n"
        "def insist():\n"
        "    while True:\n"
        f"        tempfile.tempdir = {str(tmp_path / 'work')!r}\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=insist, daemon=True).start()",
    )
    assert listed(contract).returncode == 0
    assert (tmp_path / "work" / "kept").exists()


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("import os; os._exit(0)", 2),
        ("import os; os._exit(1)", 2),
        ("import os; os.execv('/bin/true', ['true'])", 2),
        ("import os; os.closerange(0, 256)", 2),
        ("import ctypes; ctypes.CDLL(None)._exit(0)", 2),
        ("raise SystemExit(0)", 2),
        ("raise SystemExit(1)", 2),
        ("raise KeyboardInterrupt", 2),
        ("raise GeneratorExit", 2),
        ("raise type('Own', (BaseException,), {})", 2),
        ("import os; os.kill(os.getpid(), 11)", 3),
    ],
)
def test_a_contract_that_ends_the_command_is_not_clean(contract: Path, lines: str, code: int) -> None:
    """Fault: the exit code that a contract ends the process with is the command's."""
    begin(contract, lines)
    done = listed(contract)
    assert done.returncode == code, done.stderr
    assert done.stderr.strip() and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "lines",
    [
        "",
        'print(\'{"a contract": "speaks"}\')',
        "import os; os.write(1, b'straight to the descriptor')",
        "import subprocess; subprocess.run(['echo', 'a child'])",
        "import atexit, os; atexit.register(os._exit, 7)",
        "import os; os.fork() or os._exit(0)",
        "import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start()",
        "import atexit, time; atexit.register(time.sleep, 1000)",
        "import atexit; atexit.register(lambda: 1 / 0)",
        "print('x' * 10_000_000)",
        "import sys; sys.stdin.close(); sys.stdout.close(); sys.stderr.close()",
    ],
)
def test_json_is_the_report_alone(contract: Path, lines: str) -> None:
    """Fault: what a contract prints stands before the report, which no program can read then. The twin of the
    endings above: a contract that does something odd, and lets the command end, changes nothing."""
    begin(contract, lines)
    done = listed(contract)
    assert done.returncode == 0, done.stderr
    assert [kernel["kernel"] for kernel in json.loads(done.stdout)] == ["row_softmax"]


def test_a_lost_report_is_reported(contract: Path) -> None:
    """Fault: exit code 0, or 1 with a traceback, for a report that went nowhere."""
    with open("/dev/full", "w") as full:
        done = listed(contract, stdout=full)
    assert (done.returncode, done.stderr) == (
        3,
        "verify: the report could not be written: No space left on device\n",
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = listed(contract, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (3, "verify: the report could not be written: Broken pipe\n")
    done = listed(contract, preexec_fn=lambda: os.close(1), stdout=None)
    assert done.returncode == 3 and "standard output is closed" in done.stderr
    with open("/dev/full", "w") as full:
        done = listed(contract, stderr=full)
    assert done.returncode == 0 and json.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("json", "raise RuntimeError('not that one')", "not that one ({file}:1): install kernel-verify"),
        ("typer", "", "typer' has no attribute 'Argument'"),
        ("subprocess", "", "subprocess is {file}, not Python's own"),
        ("signal", "", "signal is {file}, not Python's own"),
        ("typing", "", "typing is {file}, not Python's own"),
    ],
)
def test_a_shadowed_module_is_no_finding(tmp_path: Path, name: str, text: str, said: str) -> None:
    """Fault: a file that is named like a package ends the command with a traceback and exit code 1."""
    file = tmp_path / f"{name}.py"
    file.write_text(text)
    done = subprocess.run(
        (sys.executable, "-m", "verify", "run", str(EXAMPLE), "--check", "compare"),
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        text=True, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr and said.format(file=file) in done.stderr.splitlines()[-1]


def test_a_missing_package_is_named() -> None:
    """Fault: a traceback, and the exit code of findings."""
    script = (
        "import runpy, sys\nsys.modules['typer'] = None\nsys.argv = ['verify', 'list']\n"
        "runpy.run_module('verify', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "typer" in done.stderr and "install" in done.stderr and "Traceback" not in done.stderr


def test_a_reference_that_replaces_a_builtin_is_named(contract: Path) -> None:
    """Fault: the suite, without what it calls, ends in a traceback or calls that its own defect."""
    text = contract.read_text().replace(
        "def softmax(case):\n", "def softmax(case):\n    import builtins\n    builtins.sorted = list.sort\n"
    )
    contract.write_text(text)
    done = subprocess.run(
        (sys.executable, "-m", "verify", "run", ".", "--device", "cpu", "--check", "compare", "-q"),
        cwd=contract.parent, text=True, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("verify: a contract's code has changed built-in functions, which")


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execve("/bin/sleep", ["sleep", "{seconds}"], {{}})
time.sleep(0.2)
"""


def test_daemons_end_with_the_command(contract: Path) -> None:
    """Fault: what left its session and its environment goes on when the verdict is printed."""
    seconds = f"60.{os.getpid()}"
    begin(contract, DAEMON.format(seconds=seconds))
    assert listed(contract).returncode == 0
    running = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if p.exists()]
    assert f"sleep\0{seconds}\0".encode() not in running


def test_a_signal_before_the_scratch_folder_is_made_deletes_nothing(tmp_path: Path) -> None:
    """Fault: the system's folder for temporary files is deleted as if it were the command's own."""
    (tmp_path / "kept").touch()
    code = (
        "import signal, tempfile\n"
        "from verify.cli import app\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"  # as looking up the system's folder sets it
        "app._end_now(signal.SIGTERM)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("asked", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
@pytest.mark.parametrize("early", [True, False])
def test_a_signal_ends_the_command_at_once(
    contract: Path, tmp_path: Path, asked: signal.Signals, code: int, early: bool
) -> None:
    """Fault: a signal in the first second, while packages are imported, is a traceback or is lost; or a later
    one is answered only when the contract lets go; or folders of it stay, beyond the next command."""
    begin(contract, "import pathlib, time\npathlib.Path('loaded').touch()\ntime.sleep(60)")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = subprocess.Popen(
        LIST, cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=take_interrupts,
    )  # fmt: skip
    if early:
        while command.poll() is None and not _children(command.pid):
            time.sleep(0.001)
    else:
        while not (tmp_path / "loaded").exists():
            time.sleep(0.01)
    command.send_signal(asked)
    _, said = command.communicate(timeout=30)
    assert command.returncode == code
    assert "Traceback" not in said
    contract.write_text((EXAMPLE / "row_softmax_contract.py").read_text())
    deadline = time.monotonic() + 30
    while True:  # a killed command's child ends a moment later
        done = subprocess.run(LIST, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert done.returncode == 0
        if not list(temporary.iterdir()):
            break
        assert time.monotonic() < deadline, list(temporary.iterdir())


def _children(process: int) -> str:
    try:
        return Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return ""
