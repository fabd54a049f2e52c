"""The pytest plugin: contracts become tests, and what did not run does not pass."""

from __future__ import annotations

import pytest

from verify.resources import resource_folder

CHECKOUT = resource_folder("cuda").parent
EXAMPLE = CHECKOUT / "examples" / "row_softmax"
pytest_plugins = ("pytester",)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A user's folder with one kernel, its contract and its fixtures."""
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (pytester.path / file.name).write_bytes(file.read_bytes())
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugin = ("-p", "verify.testing.plugin", "-p", "no:cacheprovider")
    return project.runpytest_subprocess(*plugin, *arguments)


def test_every_fixture_and_check_is_a_test(project: pytest.Pytester) -> None:
    """An item that is not collected is a check that nobody misses."""
    result = run(project, "--collect-only", "-q", "--check", "compare", "--check", "poison")
    result.stdout.fnmatch_lines(["*row_softmax_contract.py::row_softmax[[]one-column-compare]"])
    result.stdout.fnmatch_lines(["8 tests collected*"])


def test_no_device_fails_unless_allowed(project: pytest.Pytester) -> None:
    """Not run is a failure with the reason; only --allow-not-run makes it a skip."""
    arguments = ("--device", "gpu", "--check", "compare", "-k", "one-column")
    result = run(project, *arguments)
    if result.ret == 0:
        pytest.skip("there is a GPU: nothing is missing")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*not run: gpu:*"])
    run(project, *arguments, "--allow-not-run").assert_outcomes(skipped=1)


def test_bad_fixture_file_is_one_line(project: pytest.Pytester) -> None:
    """A typing error in a fixture must not end in a traceback through the suite."""
    toml = project.path / "row_softmax.toml"
    toml.write_text(toml.read_text().replace("rows = 2", 'rows = "two"'))
    result = run(project, "--device", "gpu", "--check", "compare")
    assert result.ret != 0
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*row_softmax.toml: one-column: rows:*"])


def test_oracles_are_no_kernels_of_the_suite(pytester: pytest.Pytester) -> None:
    """The library pipeline leaks what dead slots hold; proving it would fail every run on a GPU."""
    result = pytester.runpytest_subprocess(
        "--collect-only", "-q", "-p", "no:cacheprovider", CHECKOUT / "verify"
    )
    assert "flash_decode[" in result.stdout.str()
    assert "decode_pipeline[" not in result.stdout.str()
