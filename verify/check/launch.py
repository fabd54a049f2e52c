"""launch: the host side: errors are returned, bad input is rejected, streams and graphs are respected.

An interposer makes each runtime call of the launcher fail in turn, and the launcher must report it. The call
is captured in a CUDA graph at one length and replayed at another, waits for a late producer on its stream, is
run a second time on a used workspace, and runs on two streams concurrently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from verify.check.drift import first_apart
from verify.check.judge import judge_output
from verify.check.launch_faults import FAULT, broken_sweep, fault_findings
from verify.check.matrix import cases_for, matrix
from verify.check.native import not_done
from verify.check.refusals import refusal_findings, refusal_runs
from verify.check.subject import Ran, Subject
from verify.check.unwritten import judge_run
from verify.contract.model import Case
from verify.device.interface import Capability, Execution, RunStatus, ToolRecord
from verify.finding.finding import Finding, Outcome
from verify.finding.kind import FaultKind
from verify.fixture.cases import ProfileError, build_case, profiles_of
from verify.fixture.resolve import ResolvedFixture
from verify.harness.interposer import build_interposer
from verify.harness.render import takes_stream
from verify.oracle.expectation import OracleError, expect
from verify.toolchain.compile import BuildError
from verify.wire.run import Fill, Fills, Run

STREAM_ROUNDS = 4
"""How often the two streams run the call, alternating which is first."""

_HARNESS_KERNEL = re.compile(r"kernel verify::\w+\([^()]*\)")
"""The late producer's name in the CPU device's records."""

_IN_STREAM = "the entry's work runs on the caller's stream, after all work already in it"
_STREAMS = "concurrent calls on two streams, or from two threads, share no workspace and no other state"

_ORDERED = {"late-producer": _IN_STREAM, "two-streams": _STREAMS}
"""The modes in which the order between streams is looked at, and what it promises."""


@dataclass(frozen=True)
class LaunchRuns:
    """The runs of one fixture. swept: the run whose runtime calls the interposer makes fail."""

    ordinary: tuple[Run, ...]
    refused: tuple[Run, ...]
    swept: Run


def check_launch(subject: Subject) -> list[Outcome]:
    """One outcome per fixture; the contract's refusals belong to the fixture that they are based on."""
    fill = matrix()["launch"].fills[0]
    refused = refusal_runs(subject, fill)
    runs = {
        resolved.fixture.name: LaunchRuns(
            tuple(_ordinary_runs(subject, resolved, fill)),
            tuple(refused[resolved.fixture.name]),
            _swept_run(subject, resolved.fixture.name, fill),
        )
        for resolved in subject.fixtures
    }
    ran = subject.execute(run for one in runs.values() for run in (*one.ordinary, *one.refused))
    try:
        sweep = _sweep(subject, [one.swept for one in runs.values()])
    except BuildError as error:
        return [
            Outcome.inconclusive("launch", subject.contract.name, f, f"no interposer: {error}") for f in runs
        ]
    ended = [run for one in runs.values() for run in one.ordinary if ran[run.id].done]
    order, doubts = _stream_order(subject, ended)
    return [
        Outcome.inconclusive("launch", subject.contract.name, f, doubts[f])
        if f in doubts
        else _judge(subject, f, one, ran, sweep, order.get(f, []))
        for f, one in runs.items()
    ]


def _stream_order(subject: Subject, runs: Sequence[Run]) -> tuple[dict[str, list[Finding]], dict[str, str]]:
    """Run the late producer and the two streams under racecheck, if the device's racecheck detects unordered
    streams whichever ran first; another device shows the fault by running the producer late, or by results
    that differ. Returns findings by fixture, and by fixture the reasons why the tool cannot be trusted.
    """
    ordered = [replace(run, repeats=1) for run in runs if run.mode in _ORDERED]
    if not ordered or not subject.can(Capability.ORDERS_STREAMS):
        return {}, {}
    batch = subject.start(ordered, "launch-order", "racecheck")
    if not any(_between_operations(record) for record in batch.records):
        general = "" if batch.records else batch.doubt
        whys = {run.case.fixture: general or _unended(batch, run) for run in ordered}
        return {}, {f: f"the order of streams could not be checked: {why}" for f, why in whys.items() if why}
    found: dict[str, list[Finding]] = {}
    for run in ordered:
        execution = subject.start([run], f"launch-order-{run.id}", "racecheck")
        repeat = subject.repeat_command("launch", run.case.fixture)
        found[run.case.fixture] = found.get(run.case.fixture, []) + [
            Finding(
                "launch",
                subject.contract.name,
                run.case.id,
                record.kind,
                _HARNESS_KERNEL.sub("the caller's work", record.message),
                _ORDERED[run.mode],
                severity=record.severity,
                source=record.source,
                function=record.function,
                repeat=repeat,
                details=(("mode", run.mode),),
            )
            for record in execution.records
            if _between_operations(record)
        ]
    return found, {}


def _unended(batch: Execution, run: Run) -> str:
    """Why racecheck did not see the whole run, or empty; a fault of the run is reported by other checks."""
    result = batch.results[run.id]
    return result.error if result.status in (RunStatus.TIMEOUT, RunStatus.LEFT_OUT) else ""


def _between_operations(record: ToolRecord) -> bool:
    """Whether a record is about unordered streams; racecheck itself reports races inside a kernel."""
    return record.kind.startswith(
        ("Race between unordered operations", "Race between the host and the device")
    )


def _ordinary_runs(subject: Subject, resolved: ResolvedFixture, fill: Fill) -> list[Run]:
    """A second call and, if the entry takes a stream: graph, late producer, two streams and two threads."""
    fixture = resolved.fixture.name
    case = cases_for("launch", subject.cases[fixture])[0]
    other = _other_data(case, subject.cases[fixture])
    fills = Fills(fill, fill, fill, fill)
    runs = [Run(f"{fixture}.{case.profile}.second-call", case, "second-call", fills, captured=other)]
    if takes_stream(subject.contract):
        captured = captured_case(subject, resolved, case)
        keep = subject.contract.drift > 0
        runs += [
            Run(f"{fixture}.{case.profile}.graph", case, "graph", fills, captured=captured),
            Run(f"{fixture}.{case.profile}.late-producer", case, "late-producer", fills),
            Run(
                f"{fixture}.{case.profile}.two-streams",
                case,
                "two-streams",
                fills,
                STREAM_ROUNDS,
                other,
                keep,
            ),
            Run(
                f"{fixture}.{case.profile}.two-threads",
                case,
                "two-threads",
                fills,
                STREAM_ROUNDS,
                other,
                keep,
            ),
        ]
    return runs


def _other_data(case: Case, cases: Mapping[str, Case]) -> Case | None:
    """Another profile's case of the fixture, with the same arguments and sizes: what a launcher or kernel
    keeps from one call is then wrong for the other. None if the fixture has one profile.
    """
    others = (
        c for c in cases.values() if c is not case and c.symbols == case.symbols and c.plan == case.plan
    )
    return next(others, None)


def captured_case(subject: Subject, resolved: ResolvedFixture, case: Case) -> Case | None:
    """The case at which a graph is captured, with other values of symbols that exist only in device memory.

    None if the contract has none. Raises ProfileError if the profile cannot fill it.
    """
    contract = subject.contract
    if not contract.captured_at:
        return None
    kinds = {symbol.name: symbol.kind for symbol in contract.declared_symbols}
    symbols = dict(case.symbols)
    for name, expression in contract.captured_at.items():
        value = case.evaluate(expression)
        symbols[name] = (value,) * len(case.symbols[name]) if kinds[name] == "ints" else value
    profile = next(p for p in profiles_of(contract) if p.name == case.profile)
    try:
        return build_case(contract, replace(resolved, symbols=symbols), profile)
    except (ProfileError, IndexError, ValueError) as error:
        raise ProfileError(f"{contract.name}: captured_at: profile {profile.name}: {error}") from error


def _swept_run(subject: Subject, fixture: str, fill: Fill) -> Run:
    case = cases_for("launch", subject.cases[fixture])[0]
    return Run(f"{fixture}.{case.profile}.faults", case, fills=Fills(fill, fill, fill, None))


def _sweep(subject: Subject, runs: Sequence[Run]) -> Execution:
    """Execute the runs with the interposer preloaded. Raises BuildError if it cannot be built."""
    preload = {**subject.environment, "LD_PRELOAD": str(build_interposer())}
    return replace(subject, environment=preload).start(runs, "launch-faults")


def _judge(
    subject: Subject,
    fixture: str,
    runs: LaunchRuns,
    ran: Mapping[str, Ran],
    sweep: Execution,
    order: Sequence[Finding],
) -> Outcome:
    name = subject.contract.name
    swept = Ran(runs.swept, sweep.results[runs.swept.id], None)
    plain = [ran[run.id] for run in (*runs.ordinary, *runs.refused)]
    if (unfinished := not_done("launch", subject, fixture, plain)) is not None:
        return unfinished
    repeat = subject.repeat_command("launch", fixture)
    findings: list[Finding] = [*order]
    try:
        for run in runs.ordinary:
            findings += _ordinary_findings(subject, ran[run.id], repeat)
    except OracleError as error:
        return Outcome.inconclusive("launch", name, fixture, str(error))
    for run in runs.refused:
        findings += refusal_findings(subject, ran[run.id], repeat)
    faults = [m for line in sweep.faults.get(runs.swept.id, ()) if (m := FAULT.fullmatch(line.strip()))]
    findings += fault_findings(subject, runs.swept, faults, repeat)
    if swept.result.status in (RunStatus.FAULT, RunStatus.TIMEOUT):
        findings.append(broken_sweep(subject, swept, faults, repeat))
    calls = max((int(m[3]) for m in faults), default=0)
    if not findings and not calls:
        why = swept.result.error or "the interposer saw no call of the launcher"
        return Outcome.inconclusive("launch", name, fixture, f"no runtime call was made to fail: {why}")
    measures = {"failed calls": calls, "refusals": len(runs.refused), "modes": len(runs.ordinary)}
    return Outcome.judge("launch", name, fixture, findings, strict=subject.strict, measures=measures)


def _ordinary_findings(subject: Subject, ran: Ran, repeat: str) -> list[Finding]:
    """Findings of one mode: outputs out of bound, and interference between two streams or threads."""
    output, run = ran.output, ran.run
    assert output is not None
    findings = judge_run(subject, "launch", ran, subject.expectation(run.case), repeat)
    if run.mode in ("two-streams", "two-threads"):
        other = run.captured or run.case
        second = replace(output, outputs=output.second, prior=None, intrusions=(), intrusion_count=0)
        names = frozenset(second.outputs)
        findings += judge_output("launch", replace(run, case=other), second, expect(other), repeat, names)
    if (apart := first_apart(subject, ran)) is not None:
        findings.append(
            Finding(
                "launch",
                subject.contract.name,
                run.case.id,
                FaultKind.STREAMS if run.mode == "two-streams" else FaultKind.THREADS,
                f"round {apart.repeat}: {apart.seen} differ",
                _STREAMS,
                where=apart.where,
                repeat=repeat,
            )
        )
    return [replace(f, details=(*f.details, ("mode", run.mode))) for f in findings]
