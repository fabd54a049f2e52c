"""The report: a person acts on the text, a program on JSON and the exit code."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from verify.device.interface import DeviceInfo
from verify.finding.finding import Finding, Outcome, Severity, SourceLine
from verify.report.report import KernelReport, Report, as_json, outcome_as_json, outcome_from_json
from verify.report.terminal import finding_text, print_report

DEVICE = DeviceInfo("NVIDIA H200", "gpu", "sm_90", 132, 10**11, {"driver": "580"})
FINDING = Finding(
    "racecheck",
    "k",
    "k/edge/normal",
    "shared-memory hazard",
    "write [a] then read [b]",
    "a barrier between them",
    source=SourceLine("k.cu", 12),
    function="split<64>",
    where="thread (1,0,0) of block (0,0,0)",
    repeat="python -m verify sanitize --tool racecheck k -k edge",
    details=(("access 1", "k.cu:12"),),
)


def report_of(*outcomes: Outcome) -> Report:
    kernel = KernelReport("k", "k.cu", "sm_90", {"edge": "An edge.", "wide": "A width."}, outcomes)
    return Report((kernel,), DEVICE, ("compare", "racecheck"), ("suppressed: nothing",), 1.5)


def printed(report: Report, verbose: bool = False) -> str:
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_report(report, console, verbose)
    return console.export_text()


@pytest.mark.parametrize(
    ("outcome", "code", "word"),
    [
        (Outcome.judge("compare", "k", "edge", []), 0, "CLEAN"),
        (Outcome.judge("racecheck", "k", "edge", [FINDING]), 1, "FINDINGS"),
        (Outcome.inconclusive("compare", "k", "edge", "because"), 3, "INCONCLUSIVE"),
        (Outcome.not_run("compare", "k", "edge", "because"), 3, "NOT RUN"),
    ],
)
def test_verdict_line_and_exit_code_agree(outcome: Outcome, code: int, word: str) -> None:
    """Fault: the exit code and the verdict line disagree."""
    report = report_of(outcome)
    assert report.exit_code == code
    assert printed(report).strip().splitlines()[-1].startswith(word)


def test_empty_report_is_not_clean() -> None:
    """Fault: an empty report is clean."""
    assert report_of().exit_code == 3


def test_missing_cell_is_a_dash_and_a_reason_is_printed_once() -> None:
    """Fault: a check that a device lacks looks clean, or one reason is printed for each fixture."""
    outcomes = [Outcome.not_run("compare", "k", f, "no GPU here") for f in ("edge", "wide")]
    text = printed(report_of(*outcomes))
    assert text.count("no GPU here") == 1
    row = next(line for line in text.splitlines() if line.lstrip().startswith("edge"))
    assert row.split() == ["edge", "not", "run", "-"]


def test_finding_says_where_what_and_how_to_repeat() -> None:
    """Fault: a finding lacks its place, its numbers or its repeat line."""
    text = finding_text(FINDING)
    for part in ("k.cu:12", "split<64>", "write [a] then read [b]".replace("[", "\\["), "thread (1,0,0)"):
        assert part.replace("\\[", "[") in text.replace("\\[", "[")
    assert "python -m verify sanitize" in text


def test_many_findings_of_a_kind_are_cut_but_counted() -> None:
    """Fault: many findings hide another kind, or some are missing from the count or from --verbose."""
    outcome = Outcome.judge("racecheck", "k", "edge", [FINDING] * 9)
    assert "8 more findings" in printed(report_of(outcome))
    assert printed(report_of(outcome), verbose=True).count("shared-memory hazard") == 9


def test_one_fault_under_several_checks_is_printed_once() -> None:
    """Fault: the same wrong number fills the screen once for each check that runs the kernel."""
    checks = ("compare", "poison", "launch")
    outcomes = [Outcome.judge(c, "k", "edge", [replace(FINDING, check=c)]) for c in checks]
    text = printed(report_of(*outcomes))
    assert text.count("seen      write") == 1
    assert "3 of this fault in all, in 1 case, under compare, poison, launch" in text


def test_one_fault_of_several_kinds_is_printed_once_per_set_of_fixtures() -> None:
    """Fault: a wrong number fills the screen once for each way in which it shows; or a second fault, in a
    fixture of its own, hides behind the first.
    """
    faces = (
        ("compare", "NaN where none belongs"),
        ("poison", "outside the bound"),
        ("poison", "unwritten output"),
    )
    found = [replace(FINDING, check=c, kind=k, source=None, seen=f"seen as {k}") for c, k in faces]
    other = replace(found[0], check="determinism", kind="depends on the schedule", case="k/wide/normal")
    report = report_of(*(Outcome.judge(f.check, "k", "edge", [f]) for f in (*found, other)))
    text = " ".join(printed(report).split())
    assert text.count("seen as") == 2
    assert "also as outside the bound, unwritten output" in text
    assert "depends on the schedule in k/wide/normal" in text
    assert printed(report, verbose=True).count("seen as") == 4


def test_notes_and_warnings_are_printed() -> None:
    """Fault: suppressions in force or warnings are missing from a report."""
    warning = Finding("racecheck", "k", "k/edge/normal", "same value", "a", "b", Severity.WARNING)
    text = printed(report_of(Outcome.judge("racecheck", "k", "edge", [warning])))
    assert "suppressed: nothing" in text
    assert "1 warning" in text
    assert "clean 1w" in text


def test_outcome_survives_json() -> None:
    """Fault: an outcome loses a field on its way through JSON between pytest workers."""
    outcome = Outcome.judge("racecheck", "k", "edge", [FINDING], measures={"slack": float("inf"), "n": 3})
    back = outcome_from_json(json.loads(json.dumps(outcome_as_json(outcome))))
    assert back.findings == outcome.findings
    assert back.verdict == outcome.verdict
    assert back.measures == {"slack": None, "n": 3}


def test_json_is_strict() -> None:
    """Fault: the report has Infinity, which is not JSON."""
    outcome = Outcome.judge("compare", "k", "edge", [], measures={"slack": float("nan")})
    json.loads(json.dumps(as_json(report_of(outcome)), allow_nan=False))
