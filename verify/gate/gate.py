"""The gate: from a selection of kernels, fixtures and checks to a report.

Contracts and fixtures are loaded, the harness is rendered and built, the plan is queried, cases are built,
checks run on the device, and the outcomes become the report.
"""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

from verify.check.repeatable import with_tried_repeats
from verify.check.sanitize import check_tools
from verify.check.specs import SPECS, spec_of, usual_checks
from verify.check.subject import Subject
from verify.check.suppress import suppression_notes, suppressions_of, without_suppressed
from verify.contract.discovery import SUFFIX, fixture_file, own_contract_files, source_file
from verify.contract.model import Contract
from verify.device.interface import Device
from verify.finding.finding import Outcome
from verify.fixture.schema import load_fixtures
from verify.gate.prepare import Prepared, Target, prepare, targets_of
from verify.gate.selection import Selection, keep_folder
from verify.harness.build import build_harness
from verify.harness.plan import query_plans, require_plans
from verify.oracle.expectation import OracleError, expect
from verify.report.instantiations import (
    fixtures_by_instantiation,
    instantiations_text,
    unmet_instantiations,
)
from verify.report.ladder import rungs
from verify.report.report import KernelReport, Report
from verify.report.reproduction import keep_reproductions
from verify.system.progress import Progress
from verify.tokens.rung import TopRung
from verify.toolchain.compile import BuildError


def argument_of(contract: Contract) -> str:
    """A contract's name on a command line: its name if it is ours, else its file."""
    own = contract.file in own_contract_files()
    return contract.file.name.removesuffix(SUFFIX) if own else shlex.quote(str(contract.file))


def run_gate(selection: Selection, device: Device | None, missing: str, progress: Progress) -> Report:
    """Verify everything selected. missing: why there is no device, if there is none.

    Without a device, everything that needs none is done (fixtures, build, oracle); every check is ``not
    run``.
    """
    started = time.monotonic()
    checks = selection.checks or usual_checks(device)
    if selection.ladder and "parity" not in checks:
        checks = (*checks, "parity")
    targets = targets_of(selection, device)
    top = TopRung(selection.ladder, missing, progress)
    with (
        tempfile.TemporaryDirectory(prefix="verify-") as scratch,
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as compilers,
    ):
        # Later kernels compile while earlier ones run. A failure here recurs, and is reported, in its turn.
        begun = {id(target.contract) for target in targets[:1]}
        for target in targets:
            if id(target.contract) not in begun:
                begun.add(id(target.contract))
                compilers.submit(build_harness, target.contract, target.built, progress)
        ready: dict[int, Prepared] = {}
        reports = [
            _run_target(target, selection, checks, missing, Path(scratch) / str(n), progress, top, ready)
            for n, target in enumerate(targets)
        ]
    notes = notes_of(device, selection.contracts, [o for report in reports for o in report.outcomes])
    info = device.info() if device is not None else None
    return Report(tuple(reports), info, tuple(checks), notes, time.monotonic() - started, selection.strict)


def _run_target(
    target: Target,
    selection: Selection,
    checks: Sequence[str],
    missing: str,
    scratch: Path,
    progress: Progress,
    top: TopRung,
    prepared: dict[int, Prepared],
) -> KernelReport:
    begun = time.monotonic()
    contract = target.contract

    def report_progress(text: str) -> None:
        progress(f"{target.architecture} {text}")

    report_progress(f"{contract.name}: building the harness")
    try:
        before = prepared.get(id(contract))  # not by name, which another contract may share
        ready = prepare(
            contract, selection.select, target.built, target.sm_count, report_progress, before=before
        )
        prepared[id(contract)] = ready
    except BuildError as error:
        return _unbuilt(target, selection, checks, str(error), time.monotonic() - begun, top)
    if target.device is None:
        outcomes = _without_device(ready, checks, missing)
    else:
        outcomes = run_checks(ready, target.device, checks, scratch, selection, report_progress)
    rung = top.of(contract, target.device, target.architecture)
    outcomes += [rung.outcome(contract.name)] if rung is not None else []
    climbed = rungs(
        contract, ready.cases, outcomes, target.device, top.text(contract, rung), ready.expected, ready.agreed
    )
    # An oracle that arbitrary precision contradicts cannot judge a kernel, so no verdict is clean.
    outcomes += [
        Outcome.inconclusive("compare", contract.name, ready.fixtures[0].fixture.name, f"{rung} {text}")
        for rung, text in climbed.items()
        if text.startswith("failed")
    ]
    by_instantiation = fixtures_by_instantiation(contract, ready.fixtures)
    instantiations = instantiations_text(by_instantiation, outcomes)
    # Only all fixtures together must run every instantiation.
    if len(ready.fixtures) == ready.known:
        outcomes += unmet_instantiations(contract, by_instantiation, ready.fixtures)
    return KernelReport(
        contract.name,
        source_file(contract).name,
        target.architecture,
        {r.fixture.name: r.fixture.pins for r in ready.fixtures},
        tuple(outcomes),
        climbed,
        time.monotonic() - begun,
        instantiations,
    )


def _unbuilt(
    target: Target, selection: Selection, checks: Sequence[str], why: str, seconds: float, top: TopRung
) -> KernelReport:
    """The report on a kernel whose harness does not compile: it is not verified, and the others go on."""
    contract = target.contract
    fixtures = load_fixtures(fixture_file(contract), contract)
    chosen = selection.select([f.name for f in fixtures])
    pins = {f.name: f.pins for f in fixtures if f.name in chosen}
    outcomes = [Outcome.inconclusive(check, contract.name, name, why) for name in pins for check in checks]
    source = source_file(contract)
    return KernelReport(
        contract.name,
        source.name,
        target.architecture,
        pins,
        tuple(outcomes),
        rungs(contract, {}, outcomes, None, top.text(contract, None)),
        seconds,
    )


def notes_of(
    device: Device | None, contracts: Sequence[Contract], outcomes: Sequence[Outcome]
) -> tuple[str, ...]:
    """The notes of a report: the device's own, and the suppressions."""
    known = dict.fromkeys(s for contract in contracts for s in suppressions_of(contract.directory))
    notes = suppression_notes(known, date.today(), outcomes)
    return (*(device.notes() if device is not None else ()), *notes)


def run_checks(
    ready: Prepared,
    device: Device,
    checks: Sequence[str],
    folder: Path,
    selection: Selection,
    progress: Progress,
) -> list[Outcome]:
    """The outcomes of the checks, with packs and outputs in ``folder``, and tried repeat lines."""
    subject = subject_of(ready, device, folder, selection, progress)
    outcomes = ask_checks(subject, checks)
    own = {spec.name: spec.function for spec in SPECS if spec.name in checks and not spec.beside}
    outcomes = with_tried_repeats(outcomes, subject, own, selected=len(subject.cases) < ready.known)
    if (kept := keep_folder(selection, ready.contract)) is not None:
        outcomes = keep_reproductions(outcomes, subject, ready.build, kept)
    return outcomes


def subject_of(
    ready: Prepared, device: Device, folder: Path, selection: Selection, progress: Progress
) -> Subject:
    """The input of the checks for a prepared kernel."""
    return Subject(
        ready.contract,
        ready.fixtures,
        ready.cases,
        ready.build.binary,
        device,
        folder,
        argument=argument_of(ready.contract),
        strict=selection.strict,
        seeds=selection.seeds,
        progress=progress,
        plans=lambda asked: require_plans(ready.build, ready.contract, asked, device.info().sm_count),
        offers=lambda asked: query_plans(ready.build, ready.contract, asked, device.info().sm_count),
        bases=ready.bases,
        _expected=ready.expected,
        _pace=ready.pace,
    )


def ask_checks(subject: Subject, checks: Sequence[str]) -> list[Outcome]:
    """The outcomes of the checks, without the known false alarms.

    Checks that wait for the device run beside the others, which spend their time in the oracle.
    """
    name = subject.contract.name
    wanted = [spec for spec in SPECS if spec.name in checks]
    tools = [spec.tool for spec in wanted if spec.tool is not None]
    own = {spec.name: spec.function for spec in wanted if not spec.beside}
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(1) as beside:
        waiting = [beside.submit(check_tools, subject, tools)] if tools else []
        waiting += [beside.submit(s.function, subject) for s in wanted if s.beside and s.tool is None]
        for check, function in own.items():
            subject.progress(f"{name}: {check}")
            outcomes += function(subject)
        if waiting:
            subject.progress(f"{name}: waiting for concurrent checks")
        for done in waiting:
            outcomes += done.result()
    return _unsuppressed(outcomes, subject)


def _unsuppressed(outcomes: Sequence[Outcome], subject: Subject) -> list[Outcome]:
    """Apply suppressions to checks without a tool; outcomes of tools only list those already applied."""
    known = suppressions_of(subject.contract.directory)
    source, today = source_file(subject.contract), date.today()
    kept = []
    for outcome in outcomes:
        if spec_of(outcome.check).tool is not None:
            used = tuple(str(s) for s in known if s.tool == outcome.check and str(s) in subject.suppressed)
            kept.append(replace(outcome, suppressed=used))
        else:
            kept.append(without_suppressed(outcome, known, source, today, subject.strict))
    return kept


def _without_device(ready: Prepared, checks: Sequence[str], missing: str) -> list[Outcome]:
    """Not run, with the reason; but the oracle is computed, which reveals errors in the contract."""
    name = ready.contract.name
    outcomes = []
    for fixture, cases in ready.cases.items():
        try:
            for case in cases.values():
                expect(case)
        except OracleError as error:
            outcomes.append(Outcome.inconclusive("compare", name, fixture, str(error)))
        else:
            outcomes += [Outcome.not_run(check, name, fixture, missing) for check in checks]
    return outcomes
