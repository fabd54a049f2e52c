"""What a person gets wrong ends in one line and exit code 2, and never in a clean verdict."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from verify.check.subject import run_seconds
from verify.system.exit_code import ExitCode

EXAMPLE = Path(__file__).parents[2] / "examples" / "row_softmax"


@pytest.fixture
def verify(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command in a folder that holds the example."""
    shutil.copytree(EXAMPLE, tmp_path / "kernel")

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "verify", *words]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )

    return run


def edit(folder: Path, old: str, new: str) -> None:
    contract = folder / "kernel" / "row_softmax_contract.py"
    text = contract.read_text()
    assert old in text
    contract.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import numpy as np\n", "import sys\nimport numpy as np\nsys.exit(0)\n"),
        ('    weight = np.exp(case.f64("x")', '    raise SystemExit(0)\n    weight = np.exp(case.f64("x")'),
    ],
)
def test_a_contract_that_ends_the_process_is_not_clean(
    verify: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, old: str, new: str
) -> None:
    """Fault: sys.exit(0) in a contract becomes the gate's exit code 0, with nothing proved."""
    edit(tmp_path, old, new)
    done = verify("run", "kernel", "--device", "cpu", "--check", "compare", "-k", "one-column", "-q")
    assert done.returncode == ExitCode.USAGE
    assert "row_softmax_contract.py" in done.stderr and "SystemExit" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        (["run", ""], {}, "name is empty"),
        (["run", "kernel/row_softmax.toml"], {}, "name row_softmax_contract.py"),
        (["run", "kernel", "--check", "compare"], {"VERIFY_RUN_SECONDS": "-1"}, "VERIFY_RUN_SECONDS"),
        (["run", "kernel", "--check", "compare"], {"VERIFY_CACHE_BYTES": "lots"}, "VERIFY_CACHE_BYTES"),
        (["run", "kernel", "--check", "compare"], {"VERIFY_CACHE": "/dev/null/x"}, "set VERIFY_CACHE"),
        (["sanitize", "--threads", "-3", "--", "./program"], {}, "--threads"),
        (["run", "kernel", "--check", "compare"], {"VERIFY_TOOLCHAIN": "foo"}, "VERIFY_TOOLCHAIN"),
        (["run", "kernel", "--findings", "/dev/null"], {}, "--findings"),
        (["run", "kernel", "--findings", "/proc/none/deep"], {}, "--findings"),
        (["sanitize", "kernel", "--findings", "/dev/null/deep"], {}, "--findings"),
        (["sanitize", "--", "./kernel/row_softmax.toml"], {}, "is not executable"),
        (["run", "kernel", "-k", "nothere"], {}, "selects none of"),
        (["sanitize", "--error-exitcode", "999", "--", "./program"], {}, "--error-exitcode"),
        (["sanitize", "--", "./no-program"], {}, "no such program"),
        (["sanitize", "--", "no.cu"], {}, "no such file"),
        (["sanitize", "--log-file", "/no/where", "--", "./program"], {}, "--log-file"),
        (["sanitize", "--json", "/", "--", "./program"], {}, "--json"),
    ],
)
def test_bad_words_and_settings_are_named(
    verify: Callable[..., subprocess.CompletedProcess[str]],
    words: list[str],
    environment: dict[str, str],
    said: str,
) -> None:
    """Fault: a wrong setting is ignored, blamed on the kernel, or ends in a traceback."""
    on_cpu = ["--device", "cpu", "-q"] if words[0] == "run" else []
    done = verify(*words, *on_cpu, **environment)
    assert done.returncode == ExitCode.USAGE
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_executable_file_that_is_not_a_program_is_named(
    verify: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Fault: an operating system's error number in place of what is wrong."""
    (tmp_path / "text").write_text("no program\n")
    (tmp_path / "text").chmod(0o755)
    done = verify("sanitize", "--", "./text")
    assert done.returncode == ExitCode.USAGE
    assert "./text: cannot be started: Exec format error" in done.stderr


def test_checking_the_findings_folder_leaves_nothing(
    verify: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Fault: a clean or refused run litters with empty folders."""
    done = verify("run", "kernel", "-k", "nothere", "--findings", "a/b", "--device", "cpu", "-q")
    assert done.returncode == ExitCode.USAGE and "selects none of" in done.stderr
    assert not (tmp_path / "a").exists()


def test_arrays_beyond_the_memory_are_named(
    verify: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Fault: an impossible size is reported as a MemoryError without the fixture."""
    fixtures = tmp_path / "kernel" / "row_softmax.toml"
    fixtures.write_text(fixtures.read_text().replace("rows = 2\n", 'rows = "2**45"\n'))
    done = verify("run", "kernel", "--device", "cpu", "-k", "one-column", "-q")
    assert done.returncode == ExitCode.USAGE
    assert "row_softmax.toml: one-column: symbols: the arrays of profile normal do not fit" in done.stderr
    assert "rows = 35184372088832" in done.stderr


def test_an_error_model_without_bounds_is_reported(
    verify: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Fault: a contract that returns plain arrays is called a defect of the suite."""
    edit(tmp_path, "error_model=fp32_softmax", "error_model=softmax")
    done = verify("run", "kernel", "--device", "cpu", "--check", "compare", "-k", "one-column", "-q")
    assert done.returncode == 3
    assert "must be a Tracked value" in " ".join(done.stdout.split())


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e30", "-1", "soon"])
def test_an_invalid_limit_is_rejected(seconds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a run without a limit, or an overflow deep in a wait that is called a defect of the suite."""
    monkeypatch.setenv("VERIFY_RUN_SECONDS", seconds)
    with pytest.raises(ValueError, match="VERIFY_RUN_SECONDS: must be a number of seconds from 1 to"):
        run_seconds()


def test_an_expression_given_twice_is_refused(
    verify: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """Fault: the first ``-k`` is silently ignored, and its fixtures with it."""
    done = verify("run", "kernel", "--device", "cpu", "-k", "one-column", "-k", "padded-rows", "-q")
    assert done.returncode == ExitCode.USAGE
    assert "-k is given 2 times: join the words, as in -k 'one-column or padded-rows'" in done.stderr


def test_names_and_messages_cannot_control_a_terminal(
    verify: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Fault: a fixture's sentence is markup, clears the screen, or raises an error in a CI's log."""
    fixtures = tmp_path / "kernel" / "row_softmax.toml"
    text = fixtures.read_text()
    pins = text[text.index('pins = "') : text.index("\n", text.index('pins = "'))]
    fixtures.write_text(text.replace(pins, r'pins = "\u001b[2J [red]a[/] [/nothing] :smile: b"'))
    done = verify("list", "kernel")
    assert done.returncode == 0
    assert r"\x1b[2J [red]a[/] [/nothing] :smile: b" in done.stdout
    edit(tmp_path, "def softmax", 'raise ValueError("\\x1b[31m\\n::error::planted")\n\n\ndef softmax')
    done = verify("run", "kernel", "--device", "cpu", "-q")
    assert done.returncode == ExitCode.USAGE
    assert r"\x1b[31m" in done.stderr
    assert "\x1b" not in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("::error")]


def test_an_interrupted_program_is_reported_as_interrupted(tmp_path: Path) -> None:
    """Fault: Ctrl-C is reported as "nothing was verified" with the exit code of a defect."""
    (tmp_path / "endless.cu").write_text(
        "__global__ void count(volatile int* x) { while (true) *x = *x + 1; }\n"
        "int main() { int* x; cudaMalloc(&x, 4); cudaMemset(x, 0, 4); count<<<1, 1>>>(x);\n"
        '  puts("launched"); fflush(stdout); return cudaDeviceSynchronize(); }\n'
    )
    words = [
        sys.executable,
        "-m",
        "verify",
        "sanitize",
        "--nvcc-flags",
        "-include cstdio",
        "--",
        "endless.cu",
    ]
    program = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "launched\n"
    os.killpg(program.pid, signal.SIGINT)  # as a terminal does
    _, said = program.communicate(timeout=30)
    assert program.returncode == 130
    assert said.splitlines()[-1].endswith("interrupted")
