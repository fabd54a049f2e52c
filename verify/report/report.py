"""The report as data: what was verified, on which device, with which outcomes. It is printed elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verify.device.interface import DeviceInfo
from verify.finding.finding import EXIT_CODES, Finding, Outcome, Severity, Verdict, overall


@dataclass(frozen=True)
class KernelReport:
    """One kernel's part.

    pins: fixture -> the fault it pins, in file order. rungs: the oracle ladder, rung -> result.
    instantiations: how many of the contract's instantiations ran, and which did not; empty if it has none.
    """

    kernel: str
    source: str
    architecture: str
    pins: Mapping[str, str]
    outcomes: tuple[Outcome, ...]
    rungs: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    instantiations: str = ""


@dataclass(frozen=True)
class Report:
    """The result of one command. notes: lines that every report must print (suppressions, limits)."""

    kernels: tuple[KernelReport, ...]
    device: DeviceInfo | None
    checks: tuple[str, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    strict: bool = False

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """All outcomes of all kernels."""
        return tuple(o for k in self.kernels for o in k.outcomes)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings: errors before warnings, those with a source line before their consequences."""
        found = [f for o in self.outcomes for f in o.findings]
        return tuple(sorted(found, key=lambda f: (f.severity is not Severity.ERROR, f.source is None)))

    @property
    def verdict(self) -> Verdict:
        """The overall verdict."""
        return overall(self.outcomes)

    @property
    def only_not_run(self) -> bool:
        """Whether some outcome is clean and all others are not run."""
        return {o.verdict for o in self.outcomes} == {Verdict.CLEAN, Verdict.NOT_RUN}

    @property
    def exit_code(self) -> int:
        """0 clean, 1 findings, 3 inconclusive or not run."""
        return EXIT_CODES[self.verdict]


def as_json(report: Report) -> dict[str, Any]:
    """A report as plain JSON values; the keys are part of the interface (docs/reference/commands.md)."""
    return {
        "schema": 1,
        "verdict": str(report.verdict),
        "exit_code": report.exit_code,
        "seconds": round(report.seconds, 3),
        "device": dataclasses.asdict(report.device) if report.device else None,
        "checks": list(report.checks),
        "notes": list(report.notes),
        "kernels": [
            {
                "kernel": k.kernel,
                "source": k.source,
                "architecture": k.architecture,
                "seconds": round(k.seconds, 3),
                "ladder": dict(k.rungs),
                "instantiations": k.instantiations,
                "fixtures": [{"name": name, "pins": pins} for name, pins in k.pins.items()],
                "outcomes": [outcome_as_json(o) for o in k.outcomes],
            }
            for k in report.kernels
        ],
    }


def outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    """One outcome as plain JSON values."""
    return {
        "check": outcome.check,
        "kernel": outcome.kernel,
        "fixture": outcome.fixture,
        "verdict": str(outcome.verdict),
        "reason": outcome.reason,
        "measures": {k: _finite(v) for k, v in outcome.measures.items()},
        "findings": [finding_as_json(f) for f in outcome.findings],
        "suppressed": list(outcome.suppressed),
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """One finding as plain JSON values."""
    plain = dataclasses.asdict(finding)
    plain["severity"] = str(finding.severity)
    plain["details"] = dict(finding.details)
    return plain


def outcome_from_json(plain: Mapping[str, Any]) -> Outcome:
    """The outcome from :func:`outcome_as_json`; test workers share results this way."""
    from verify.finding.finding import SourceLine

    findings = tuple(
        Finding(
            **{
                **f,
                "severity": Severity(f["severity"]),
                "source": SourceLine(**f["source"]) if f["source"] else None,
                "details": tuple(f["details"].items()),
            }
        )
        for f in plain["findings"]
    )
    return Outcome(
        plain["check"],
        plain["kernel"],
        plain["fixture"],
        Verdict(plain["verdict"]),
        findings,
        plain["reason"],
        dict(plain["measures"]),
        tuple(plain.get("suppressed", ())),
    )


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


def counts(outcomes: Sequence[Outcome]) -> dict[Verdict, int]:
    """The number of outcomes by verdict."""
    return {v: sum(o.verdict is v for o in outcomes) for v in Verdict}
