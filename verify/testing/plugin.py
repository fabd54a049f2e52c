"""The pytest plugin: every ``*_contract.py`` is a test file, every fixture x check is a test.

``pytest -n auto verify/`` runs the suite's own contracts, ``pytest my_kernels/`` a user's. The first test of
a kernel runs all its selected tests as a batch; the other workers wait and read the results. No contract is
ever loaded in pytest's own process, which it could end: see :mod:`verify.testing.worker`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from rich.text import Text

from verify.check.specs import CHECKS, usual_checks
from verify.contract.discovery import SUFFIX, contract_files_below, is_searched
from verify.device.select import NoDevice
from verify.finding.finding import Outcome, Severity, Verdict, worse
from verify.gate.blame import BlamedError
from verify.report.report import outcome_from_json
from verify.report.terminal import finding_text
from verify.system.publish import publish_text
from verify.system.scratch import make_scratch, sweep_scratch
from verify.testing.worker import Batch, Listing, Worker, device_of
from verify.toolchain.cache import digest

_RESULTS = pytest.StashKey[Path]()
"""The folder in which the workers of one test run share results."""

_WORKER = pytest.StashKey[Worker]()
_ADMITTED = pytest.StashKey[set[Path]]()

_CHECK = "verify_check"
"""The keyword by which reports of the plugin's tests are recognised."""

_PASSED_BY = ("*.egg", "_darcs", "build", "CVS", "dist", "venv", "{arch}")
"""Folders that pytest ignores by default because of their names, and ``verify run`` searches."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite; ``--verify-strict`` is ``verify run --strict``."""
    group = parser.getgroup("verify", "kernel verification")
    group.addoption("--device", default="auto", choices=("auto", "gpu", "cpu"), help="where kernels run")
    group.addoption(
        "--check", action="append", default=[], choices=CHECKS, help="only this check (repeatable)"
    )
    group.addoption(
        "--allow-not-run", action="store_true", help="checks that cannot run here are skipped, not failed"
    )
    group.addoption("--verify-strict", action="store_true", help="warnings count as findings")


def pytest_configure(config: pytest.Config) -> None:
    """Set up the state of this process and this test run."""
    config.stash[_WORKER] = Worker()
    config.pluginmanager.register(_Verified(), "verify-verified")
    config.stash[_ADMITTED] = set()
    if hasattr(config, "workerinput"):
        config.stash[_RESULTS] = Path(config.workerinput["verify_results"])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the results folder to an xdist worker."""
    node.workerinput["verify_results"] = str(_results(node.config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End this process's worker; the process that started the test run deletes the results."""
    config.stash[_WORKER].close()
    if _RESULTS in config.stash and not hasattr(config, "workerinput"):
        shutil.rmtree(config.stash[_RESULTS], ignore_errors=True)


def _results(config: pytest.Config) -> Path:
    if _RESULTS not in config.stash:
        sweep_scratch()
        config.stash[_RESULTS] = make_scratch()
    return config.stash[_RESULTS]


@pytest.hookimpl(wrapper=True)
def pytest_ignore_collect(
    collection_path: Path, config: pytest.Config
) -> Generator[None, bool | None, bool | None]:
    """Search folders that pytest ignores because of their names, but only for contracts."""
    ignored = yield
    admitted = config.stash[_ADMITTED]
    by_name = any(fnmatch(collection_path.name, pattern) for pattern in _PASSED_BY)
    if ignored and by_name and is_searched(collection_path) and collection_path.is_dir():
        asked = [Path(os.path.abspath(one)) for one in config.getoption("ignore") or ()]
        if collection_path not in asked and any(contract_files_below(collection_path)):
            admitted.add(collection_path)
            return False
    if admitted.intersection(collection_path.parents) and not collection_path.is_dir():
        return not collection_path.name.endswith(SUFFIX)
    return ignored


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect contracts."""
    if file_path.name.endswith(SUFFIX):
        return ContractFile.from_parent(parent, path=file_path)
    return None


class _Verified:
    """Counts a run's checks, and those that were not skipped, over all workers."""

    def __init__(self) -> None:
        self.checks = self.ran = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if _CHECK in report.keywords and report.when == "call":
            self.checks += 1
            self.ran += not report.skipped

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.checks and not self.ran and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.checks and not self.ran:
            terminalreporter.write_line(f"verify: nothing was verified: {self.checks} checks were skipped")


class ContractFile(pytest.File):
    """One contract: its fixtures x checks."""

    def collect(self) -> Iterator[pytest.Item]:
        try:
            name, fixtures = self.config.stash[_WORKER].ask(Listing(self.path))
        except BlamedError as error:
            raise self.CollectError(error.args[0]) from None
        device = device_of(self.config.getoption("--device"))
        usual = usual_checks(None if isinstance(device, NoDevice) else device)
        checks = [c for c in CHECKS if c in (self.config.getoption("--check") or usual)]
        for fixture in fixtures:
            for check in checks:
                yield CheckItem.from_parent(
                    self,
                    name=f"{name}[{fixture}-{check}]",
                    fixture=fixture,
                    check=check,
                )


class NotCleanError(Exception):
    """A check was not clean; has the outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason or str(outcome.verdict))
        self.outcome = outcome


class CheckItem(pytest.Item):
    """One check of one fixture."""

    def __init__(self, *, fixture: str, check: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fixture, self.check = fixture, check
        self.keywords[_CHECK] = True

    def runtest(self) -> None:
        outcome = _outcomes(self)[f"{self.fixture}/{self.check}"]
        for name, value in outcome.measures.items():
            self.user_properties.append((name, value))
        strict = self.config.getoption("--verify-strict")
        errors = [f for f in outcome.findings if f.severity is Severity.ERROR or strict]
        for finding in outcome.findings:
            if finding not in errors:
                self.warn(pytest.PytestWarning(_plain(finding_text(finding))))
        if outcome.verdict is Verdict.NOT_RUN and self.config.getoption("--allow-not-run"):
            pytest.skip(outcome.reason)
        if outcome.verdict is not Verdict.CLEAN:
            raise NotCleanError(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, NotCleanError):
            return super().repr_failure(excinfo, style)
        outcome = excinfo.value.outcome
        if outcome.findings:
            return "\n\n".join(_plain(finding_text(f)) for f in outcome.findings)
        return f"{outcome.verdict}: {outcome.reason}"

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def _plain(markup: str) -> str:
    return Text.from_markup(markup).plain


def _outcomes(item: CheckItem) -> dict[str, Outcome]:
    """All outcomes of the item's contract from the shared results; the first caller runs the batch."""
    # Keyed by file: another contract of the run may have the same name.
    results = _results(item.config) / f"{digest([str(item.path)])}.json"
    with FileLock(results.with_suffix(".lock")):
        if not results.exists():
            publish_text(results, json.dumps(_run_batch(item)))
    stored = json.loads(results.read_text(encoding="utf-8"))
    if "error" in stored:
        pytest.fail(stored["error"], pytrace=False)
    merged: dict[str, Outcome] = {}
    for plain in stored["outcomes"]:
        outcome = outcome_from_json(plain)
        key = f"{outcome.fixture}/{outcome.check}"
        merged[key] = worse(merged[key], outcome) if key in merged else outcome
    return merged


def _run_batch(item: CheckItem) -> dict[str, Any]:
    siblings = [i for i in item.session.items if isinstance(i, CheckItem) and i.path == item.path]
    batch = Batch(
        item.path,
        tuple(dict.fromkeys(i.fixture for i in siblings)),
        tuple(c for c in CHECKS if c in {i.check for i in siblings}),
        item.config.getoption("--device"),
        item.config.getoption("--verify-strict"),
    )
    try:
        return {"outcomes": item.config.stash[_WORKER].ask(batch)}
    except BlamedError as error:
        # Stored, so that the other workers fail with the same reason instead of trying again.
        return {"error": error.args[0]}
