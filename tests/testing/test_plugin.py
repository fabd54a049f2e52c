"""The pytest plugin: contracts become tests, and what did not run does not pass."""

from __future__ import annotations

import pytest

from verify.system.resources import resource_folder
from verify.toolchain.cache import cache_folder

CHECKOUT = resource_folder("cuda").parent
EXAMPLE = CHECKOUT / "examples" / "row_softmax"
CACHE = cache_folder()
pytest_plugins = ("pytester",)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A user's folder with one kernel, its contract and its fixtures."""
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("VERIFY_CACHE", str(CACHE))  # pytester has a home of its own
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (pytester.path / file.name).write_bytes(file.read_bytes())
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugin = ("-p", "verify.testing.plugin", "-p", "no:cacheprovider")
    return project.runpytest_subprocess(*plugin, *arguments)


def test_every_fixture_and_check_is_a_test(project: pytest.Pytester) -> None:
    """Fault: a check of a fixture is not collected, unnoticed."""
    result = run(project, "--collect-only", "-q", "--check", "compare", "--check", "poison")
    result.stdout.fnmatch_lines(["*row_softmax_contract.py::row_softmax[[]one-column-compare]"])
    result.stdout.fnmatch_lines(["8 tests collected*"])


def test_no_device_fails_unless_allowed(project: pytest.Pytester) -> None:
    """Fault: a check that is not run passes, or is skipped without --allow-not-run."""
    arguments = ("--device", "gpu", "--check", "compare", "-k", "one-column")
    result = run(project, *arguments)
    if result.ret == 0:
        pytest.skip("there is a GPU: nothing is missing")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*not run: gpu:*"])
    allowed = run(project, *arguments, "--allow-not-run")
    allowed.assert_outcomes(skipped=1)
    # Fault: a run that skipped all there was passes, having looked at nothing.
    assert allowed.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    allowed.stdout.fnmatch_lines(["verify: nothing was verified: 1 checks were skipped"])


def test_bad_fixture_file_is_one_line(project: pytest.Pytester) -> None:
    """Fault: a typing error in a fixture ends in a traceback through the suite."""
    toml = project.path / "row_softmax.toml"
    toml.write_text(toml.read_text().replace("rows = 2", 'rows = "two"'))
    result = run(project, "--device", "gpu", "--check", "compare")
    assert result.ret != 0
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*row_softmax.toml: one-column: rows:*"])


def test_oracles_are_no_kernels_of_the_suite(pytester: pytest.Pytester) -> None:
    """Fault: the library pipeline, which leaks dead slots, is verified as a kernel and fails every run on a
    GPU."""
    result = pytester.runpytest_subprocess(
        "--collect-only", "-q", "-p", "no:cacheprovider", CHECKOUT / "verify"
    )
    assert "flash_decode[" in result.stdout.str()
    assert "decode_pipeline[" not in result.stdout.str()


ENDINGS = (
    "import os; os._exit(0)",
    "import os; os.execv('/bin/true', ['true'])",
    "import os; os.closerange(3, 256)",
    "raise SystemExit(0)",
    "raise type('Own', (BaseException,), {})",
)


@pytest.mark.parametrize(
    ("where", "ending"), [*(("loaded", e) for e in ENDINGS), ("run", ENDINGS[0]), ("run", ENDINGS[-1])]
)
def test_a_contract_that_exits_fails(project: pytest.Pytester, where: str, ending: str) -> None:
    """Fault: the contract ends pytest itself, with exit code 0 and no test run."""
    contract = project.path / "row_softmax_contract.py"
    text = contract.read_text()
    if where == "loaded":
        contract.write_text(f"{ending}\n{text}")
    else:
        call = "def softmax(case):\n"
        assert call in text
        contract.write_text(text.replace(call, f"{call}    {ending}\n"))
    result = run(project, "--device", "cpu", "--check", "compare", "-k", "one-column")
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    result.stdout.fnmatch_lines(["*row_softmax_contract.py*"])
    result.assert_outcomes(errors=1) if where == "loaded" else result.assert_outcomes(failed=1)


def test_contracts_with_the_same_name_are_judged_separately(project: pytest.Pytester) -> None:
    """Fault: the second of two is never run, and passes or fails with the first one's results."""
    for name in ("right", "wrong"):
        (project.path / name).mkdir()
        for file in EXAMPLE.glob("row_softmax*"):
            (project.path / name / file.name).write_bytes(file.read_bytes())
    for file in project.path.glob("row_softmax*"):
        file.unlink()
    contract = project.path / "wrong" / "row_softmax_contract.py"
    judged = "weight.sum(-1, keepdims=True)}"
    assert judged in contract.read_text()
    contract.write_text(contract.read_text().replace(judged, f"{judged[:-1]} + 1}}", 1))
    result = run(project, "--device", "cpu", "--check", "compare", "-k", "one-column", "-v", "-n", "2")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*FAILED*wrong/row_softmax_contract.py*"])


@pytest.mark.parametrize("name", ["build", "x.egg", "venv"])
def test_no_folder_is_ignored_because_of_its_name(project: pytest.Pytester, name: str) -> None:
    """Fault: contracts in a folder named build are not collected, and nothing says so; or its tests are."""
    folder = project.path / name
    folder.mkdir()
    for file in project.path.glob("row_softmax*"):
        file.rename(folder / file.name)
    (folder / "test_other.py").write_text("def test_other():\n    pass\n")
    collected = ("--collect-only", "-q", "--check", "compare")
    result = run(project, *collected)
    result.stdout.fnmatch_lines([f"{name}/row_softmax_contract.py::*one-column-compare*"])
    assert "test_other" not in result.stdout.str()
    assert "row_softmax" not in run(project, *collected, "--ignore", name).stdout.str()


def test_a_run_leaves_no_folder(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: the results of every run stay in the folder for temporary files."""
    temporary = project.path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    arguments = ("--device", "cpu", "--check", "compare", "-k", "one-column", "--basetemp", "base")
    assert run(project, *arguments).ret == 0
    assert run(project, *arguments, "-n", "1").ret == 0
    assert not [left for left in temporary.iterdir() if left.name.startswith("verify-")]
