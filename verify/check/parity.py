"""parity: the kernel against other implementations of the same op, within the sum of both bounds.

An oracle is a function (torch, on any device) or another kernel (the library pipeline that the fused kernel
replaced, on the GPU). Each has its own bound, so neither is assumed to be the truth.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import verify.contracts
from verify.check.compare import slack
from verify.check.judge import coordinates, observed_quantities, outside_bound
from verify.check.matrix import runs_for
from verify.check.native import not_done
from verify.check.subject import Ran, Subject
from verify.contract.compared import KernelOracle
from verify.contract.discovery import find_contracts
from verify.contract.formats import round_to
from verify.contract.model import Case, Contract
from verify.contract.returned import mapping
from verify.device.interface import Capability, Device
from verify.finding.finding import Finding, Outcome, Verdict
from verify.finding.kind import FaultKind
from verify.harness.build import build_harness
from verify.harness.plan import query_plans
from verify.oracle.expectation import OracleError, Quantity, expect
from verify.oracle.tracked import Tracked
from verify.toolchain.compile import BuildError
from verify.wire.run import Fills, Run


class MissingOracleError(RuntimeError):
    """An oracle is not available on this machine; the message says what to install."""


_ORACLES = Path(verify.contracts.__file__).parent / "oracles"
MISSING_TORCH = "pip install torch, or the package's extra 'parity'"
MISSING_CUBLAS = "pip install nvidia-cublas, or put libcublasLt.so.13 on LD_LIBRARY_PATH"
_REMEDIES = {"cudaErrorSharedObjectInitFailed": f"it needs cuBLASLt: {MISSING_CUBLAS}"}
"""The remedy for a kernel oracle that did not run, by the error that its launcher returns."""

Answer = Callable[[Case], Mapping[str, Tracked]]


@dataclass(frozen=True)
class _Disagreement:
    oracle: str
    quantity: Quantity
    other: Tracked
    seen: np.ndarray


def check_parity(subject: Subject) -> list[Outcome]:
    """One outcome per fixture. Measures: elements compared, in total and by oracle; smallest slack by oracle.

    If an oracle of this device is not available, the verdict is ``not run``, unless another one disagrees,
    which is a finding.
    """
    contract = subject.contract
    if not contract.parity:
        reason = "the contract has no parity oracle; add one to its parity="
        return [Outcome.not_run("parity", contract.name, f, reason) for f in subject.cases]
    wanted = {n: o for n, o in contract.parity.items() if applies(o, subject.device)}
    if not wanted:
        reason = f"none of its oracles ({', '.join(contract.parity)}) runs on {subject.device.name}"
        return [Outcome.not_run("parity", contract.name, f, reason) for f in subject.cases]
    runs = {f: runs_for("parity", cases) for f, cases in subject.cases.items()}
    ran = subject.execute(run for listed in runs.values() for run in listed)
    answers: dict[str, Answer] = {}
    missing: dict[str, str] = {}
    for name, oracle in wanted.items():
        try:
            answers[name] = _answers(subject, name, oracle, runs)
        except (MissingOracleError, BuildError) as error:
            missing[name] = str(error)
    return [
        _judge_fixture(subject, f, [ran[r.id] for r in listed], answers, missing)
        for f, listed in runs.items()
    ]


def applies(oracle: object, device: Device) -> bool:
    """Whether an oracle of a contract's ``parity`` can run on a device."""
    needs_machine_code = isinstance(oracle, KernelOracle) and oracle.machine_code
    return not needs_machine_code or Capability.RUNS_MACHINE_CODE in device.capabilities


def _answers(subject: Subject, name: str, oracle: object, runs: Mapping[str, tuple[Run, ...]]) -> Answer:
    """The function that returns an oracle's answer for a case. A kernel oracle runs all cases here."""
    if isinstance(oracle, KernelOracle):
        return _ask_kernel(subject, oracle, [run for listed in runs.values() for run in listed])
    assert callable(oracle)

    def ask(case: Case) -> Mapping[str, Tracked]:
        try:
            answer: Mapping[str, Tracked] = oracle(case)
        except ModuleNotFoundError as error:
            raise MissingOracleError(
                f"parity oracle {name} needs {error.name}: install the package's extra 'parity'"
            ) from None
        return answer

    ask(next(iter(runs.values()))[0].case)  # raises for a missing package before anything is judged
    return ask


def _ask_kernel(subject: Subject, oracle: KernelOracle, runs: list[Run]) -> Answer:
    """Run the other kernel on the same arrays, with all dead bytes finite, and read its outputs."""
    (other,) = find_contracts([str(_ORACLES / f"{oracle.kernel}_contract.py")])
    subject.progress(f"{other.name}: building the harness")
    build = build_harness(other, subject.device.info().architecture, subject.progress)
    translated = {run.case.id: _translated(run.case, other) for run in runs}
    sm_count = subject.device.info().sm_count
    plans = query_plans(build, other, [case.symbols for case in translated.values()], sm_count)
    cases = {
        name: replace(case, plan=plan) for (name, case), plan in zip(translated.items(), plans, strict=True)
    }
    partner = replace(
        subject,
        contract=other,
        binary=Path(build.binary),
        folder=subject.folder / other.name,
        environment={**subject.environment, **library_path()},
        _expected={},
        _ran={},
    )
    fills = Fills("stale", "stale", "stale", "stale")
    started = {name: Run(f"{i}", case, fills=fills) for i, (name, case) in enumerate(cases.items())}
    ran = partner.execute(started.values())

    def answer(case: Case) -> Mapping[str, Tracked]:
        one = ran[started[case.id].id]
        if not one.done or one.output is None:
            why = one.result.error or str(one.result.status)
            remedies = (remedy for error, remedy in _REMEDIES.items() if error in why)
            raise MissingOracleError("; ".join([f"{other.name} did not run: {why}", *remedies]))
        seen = observed_quantities(one.run.case, one.output)
        bounds = expect(one.run.case)
        return {name: Tracked(seen[name], quantity.bound) for name, quantity in bounds.items()}

    return answer


def library_path() -> dict[str, str]:
    """Environment with which the loader finds a cuBLASLt that was installed as a Python package."""
    folders = [Path(entry) / "nvidia" / "cu13" / "lib" for entry in sys.path]
    found = [str(folder) for folder in folders if any(folder.glob("libcublasLt.so*"))]
    given = os.environ.get("LD_LIBRARY_PATH", "")
    return {"LD_LIBRARY_PATH": ":".join([*found, *filter(None, [given])])} if found else {}


def _translated(case: Case, other: Contract) -> Case:
    """The same op instance as a case of another contract: the symbols and buffers that it declares."""
    symbols = {s.name: case[s.name] for s in other.declared_symbols}
    arrays = {b.name: case.arrays[b.name] for b in other.buffers if b.name in case.arrays}
    return Case(other, case.fixture, case.profile, symbols, {}, arrays, case.sparse)


def _judge_fixture(
    subject: Subject,
    fixture: str,
    ran: list[Ran],
    answers: Mapping[str, Answer],
    missing: Mapping[str, str],
) -> Outcome:
    name = subject.contract.name
    if (unfinished := not_done("parity", subject, fixture, ran)) is not None:
        return unfinished
    repeat = subject.repeat_command("parity", fixture)
    findings: list[Finding] = []
    unanswered = dict(missing)
    measures: dict[str, float] = {"elements": 0}
    for one in ran:
        assert one.output is not None
        seen = observed_quantities(one.run.case, one.output)
        for oracle, ask in answers.items():
            try:
                own = subject.expectation(one.run.case)
                answer = mapping(ask(one.run.case), f"{subject.contract.file}: parity: {oracle}")
            except OracleError as error:
                return Outcome.inconclusive("parity", name, fixture, str(error))
            except MissingOracleError as error:
                unanswered.setdefault(oracle, str(error))
                continue
            for quantity in (q for q in own.values() if q.name in answer):
                other = answer[quantity.name]
                found = _compare(one, _Disagreement(oracle, quantity, other, seen[quantity.name]), repeat)
                findings += found
                margin = slack(other.value, _both_bounds(quantity, other), seen[quantity.name])
                for key in ("elements", f"elements {oracle}"):
                    measures[key] = measures.get(key, 0) + quantity.value.size
                measures[f"slack {oracle}"] = min(measures.get(f"slack {oracle}", np.inf), margin)
    if unanswered and not findings:
        reason = "; ".join(unanswered.values())
        return Outcome("parity", name, fixture, Verdict.NOT_RUN, reason=reason, measures=measures)
    if not measures["elements"]:
        return Outcome.inconclusive("parity", name, fixture, "no oracle returned a quantity of this kernel")
    return Outcome.judge("parity", name, fixture, findings, strict=subject.strict, measures=measures)


def _both_bounds(quantity: Quantity, other: Tracked) -> np.ndarray:
    """The sum of both bounds. An exact quantity's result is still rounded once, to its storage format."""
    if not quantity.exact or quantity.dtype is None:
        return quantity.bound + other.bound
    return np.abs(round_to(quantity.dtype, other.value) - other.value) + 2 * other.bound


def _compare(one: Ran, pair: _Disagreement, repeat: str) -> list[Finding]:
    """A finding if an element differs from the oracle's by more than both bounds allow."""
    case, name = one.run.case, pair.quantity.name
    joint = Quantity(name, pair.other.value, _both_bounds(pair.quantity, pair.other))
    wrong = outside_bound(joint, pair.seen)
    if not wrong.any():
        return []
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return [
        Finding(
            "parity",
            case.contract.name,
            case.id,
            f"{FaultKind.DISAGREES} {pair.oracle}",
            f"{name}{list(first)} = {pair.seen[first]:.9g}",
            f"{pair.oracle}'s {joint.value[first]:.9g} within {joint.bound[first]:.3g}, both bounds added",
            where=coordinates(case, name, first),
            repeat=repeat,
            details=(
                ("elements", f"{int(wrong.sum())} of {wrong.size} apart"),
                ("float64 reference", f"{pair.quantity.value[first]:.9g}"),
            ),
        )
    ]
