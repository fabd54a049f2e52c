"""The pytest plugin: every ``*_contract.py`` is a test file, every fixture x check is a test.

``pytest -n auto verify/`` runs the suite's own contracts, ``pytest my_kernels/`` a user's. The first test
that needs a kernel's batch runs it for all selected tests; the other workers wait and read its results.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from rich.text import Text

from verify.blame import blame
from verify.contract import Contract
from verify.device.interface import Device
from verify.device.select import NoDevice, select_device
from verify.discovery import SUFFIX, fixture_file, load_contract
from verify.finding import CHECKS, Outcome, Severity, Verdict, worse
from verify.fixture.schema import load_fixtures
from verify.gate import Selection, run_gate, usual_checks
from verify.harness.build import BuildError
from verify.report.report import outcome_as_json, outcome_from_json
from verify.report.terminal import finding_text


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite; ``--verify-strict`` is ``verify run --strict``."""
    group = parser.getgroup("verify", "kernel verification")
    group.addoption("--device", default="auto", choices=("auto", "gpu", "cpu"), help="where kernels run")
    group.addoption(
        "--check", action="append", default=[], choices=CHECKS, help="only this check (repeatable)"
    )
    group.addoption(
        "--allow-not-run", action="store_true", help="what cannot run here is skipped, not failed"
    )
    group.addoption("--verify-strict", action="store_true", help="warnings count as findings")


def pytest_configure(config: pytest.Config) -> None:
    """Name this test run, so that xdist workers of one run, and only they, share results."""
    worker = getattr(config, "workerinput", None)
    run = worker["testrunuid"] if worker else uuid.uuid4().hex
    config.stash[_RESULTS] = Path(tempfile.gettempdir()) / f"verify-pytest-{os.getuid()}" / run


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect contracts."""
    if file_path.name.endswith(SUFFIX):
        return ContractFile.from_parent(parent, path=file_path)
    return None


_RESULTS = pytest.StashKey[Path]()


@cache
def _device(name: str) -> Device | NoDevice:
    return select_device(name)


class ContractFile(pytest.File):
    """One contract: its fixtures x checks."""

    def collect(self) -> Iterator[pytest.Item]:
        try:
            contract = load_contract(self.path)
            fixtures = load_fixtures(fixture_file(contract), contract)
        except ValueError as error:
            raise self.CollectError(str(error)) from None
        device = _device(self.config.getoption("--device"))
        usual = usual_checks(None if isinstance(device, NoDevice) else device)
        checks = [c for c in CHECKS if c in (self.config.getoption("--check") or usual)]
        for fixture in fixtures:
            for check in checks:
                yield CheckItem.from_parent(
                    self,
                    name=f"{contract.name}[{fixture.name}-{check}]",
                    contract=contract,
                    fixture=fixture.name,
                    check=check,
                )


class NotCleanError(Exception):
    """A check that did not come out clean; carries the outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason or str(outcome.verdict))
        self.outcome = outcome


class CheckItem(pytest.Item):
    """One check of one fixture."""

    def __init__(self, *, contract: Contract, fixture: str, check: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.contract, self.fixture, self.check = contract, fixture, check

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
    """All outcomes of the item's kernel, from this run's shared results; run once, by whoever comes first."""
    folder = item.config.stash[_RESULTS]
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / f"{item.contract.name}.json"
    with FileLock(results.with_suffix(".lock")):
        if not results.exists():
            text = json.dumps(_run_batch(item))
            fresh = results.with_suffix(f".{os.getpid()}")
            fresh.write_text(text, encoding="utf-8")
            fresh.rename(results)
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
    fixtures = tuple(dict.fromkeys(i.fixture for i in siblings))
    checks = tuple(c for c in CHECKS if c in {i.check for i in siblings})
    selection = Selection(
        (item.contract,),
        fixtures=fixtures,
        checks=checks,
        strict=item.config.getoption("--verify-strict"),
    )
    device = _device(item.config.getoption("--device"))
    missing = device.reason if isinstance(device, NoDevice) else ""
    try:
        report = run_gate(
            selection, None if isinstance(device, NoDevice) else device, missing, lambda _: None
        )
    except Exception as error:
        # Stored, so that the other workers fail with the same reason instead of trying again.
        return {"error": str(error) if isinstance(error, BuildError) else blame(error)[0]}
    return {"outcomes": [outcome_as_json(o) for o in report.outcomes]}
