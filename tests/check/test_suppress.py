"""Suppressions: a known false alarm is suppressed only where, while and for what its entry says."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from verify.check.suppress import (
    OWN_FILE,
    Suppression,
    SuppressionError,
    load_suppressions,
    suppression_notes,
    unsuppressed,
    without_suppressed,
)
from verify.device.interface import ToolRecord
from verify.finding.finding import Finding, Outcome, SourceLine, Verdict

ENTRY = """
[[suppression]]
tool = "racecheck"
kernel = "bulk"
file = "pipeline.cu"
line = 118
since = "2026.4"
until = "2026.4"
kind = "RAW"
expires = 2027-06-30
reason = "the tool does not follow the phase of the barrier"
"""

PLACE = SourceLine("/a/pipeline.cu", 118)
RECORD = ToolRecord("racecheck", "RAW hazard", "m", function="bulk_copy", source=PLACE)
TODAY = date(2027, 1, 1)


def loaded(tmp_path: Path, text: str) -> tuple[Suppression, ...]:
    file = tmp_path / "suppressions.toml"
    file.write_text(text)
    return load_suppressions(file)


def stands(tmp_path: Path, record: ToolRecord, version: tuple[int, ...], today: date) -> bool:
    return unsuppressed([record], loaded(tmp_path, ENTRY), version, today) == (record,)


def test_the_known_false_alarm_is_dropped(tmp_path: Path) -> None:
    """Fault: suppressions have no effect."""
    assert not stands(tmp_path, RECORD, (2026, 4, 0, 0), TODAY)


@pytest.mark.parametrize(
    "other",
    [
        ToolRecord("memcheck", "RAW hazard", "m", function="bulk_copy", source=PLACE),
        ToolRecord("racecheck", "WAW hazard", "m", function="bulk_copy", source=PLACE),
        ToolRecord("racecheck", "RAW hazard", "m", function="other", source=PLACE),
        replace(RECORD, source=SourceLine("pipeline.cu", 119)),
        replace(RECORD, source=SourceLine("x.cu", 118)),
        ToolRecord("racecheck", "RAW hazard", "m", function="bulk_copy"),
    ],
)
def test_other_records_are_not_suppressed(tmp_path: Path, other: ToolRecord) -> None:
    """Fault: a suppression hides a fault of another tool, kind, kernel, line or file."""
    assert stands(tmp_path, other, (2026, 4, 0, 0), TODAY)


@pytest.mark.parametrize("version", [(2026, 3, 9), (2026, 5, 0), (2025, 3, 1)])
def test_a_suppression_does_not_apply_to_another_version(tmp_path: Path, version: tuple[int, ...]) -> None:
    """Fault: a false alarm of one release hides true ones of the next."""
    assert stands(tmp_path, RECORD, version, TODAY)


def test_an_expired_suppression_lets_the_finding_through(tmp_path: Path) -> None:
    """Fault: a suppression never expires."""
    assert not stands(tmp_path, RECORD, (2026, 4, 0), date(2027, 6, 30))
    assert stands(tmp_path, RECORD, (2026, 4, 0), date(2027, 7, 1))


def test_every_entry_has_a_line_for_the_report(tmp_path: Path) -> None:
    """Fault: a report does not list its suppressions."""
    entries = loaded(tmp_path, ENTRY)
    (line,) = suppression_notes(entries, TODAY)
    assert line.startswith("suppressed: racecheck in bulk at pipeline.cu:118 until 2027-06-30: the tool")
    (line,) = suppression_notes(entries, date(2028, 1, 1))
    assert line.startswith("expired suppression: ")


UNVERSIONED = "\n".join(line for line in ENTRY.splitlines() if not line.startswith(("since", "until")))


def test_the_cpu_device_s_alarms_are_dropped_by_entries_without_a_version(tmp_path: Path) -> None:
    """Fault: the file has no effect on the CPU device, or an entry for one compute-sanitizer release has."""
    used: set[str] = set()
    assert not unsuppressed([RECORD], loaded(tmp_path, UNVERSIONED), None, TODAY, used)
    assert len(used) == 1
    assert unsuppressed([RECORD], loaded(tmp_path, ENTRY), None, TODAY) == (RECORD,)


NATIVE = """
[[suppression]]
tool = "compare"
kernel = "softmax"
file = "softmax.cu"
line = 0
kind = "outside the bound"
expires = 2027-06-30
reason = "the last column is rounded twice, and nobody minds"
"""
ALARM = Finding("compare", "softmax", "softmax/one/normal", "outside the bound", "seen", "promised")
SOURCE = Path("/a/softmax.cu")


@pytest.mark.parametrize(
    ("finding", "verdict"),
    [
        (ALARM, Verdict.CLEAN),
        (replace(ALARM, check="poison"), Verdict.FINDINGS),
        (replace(ALARM, kind="hang"), Verdict.FINDINGS),
        (replace(ALARM, kernel="other"), Verdict.FINDINGS),
    ],
)
def test_findings_of_native_checks_are_dropped_as_well(
    tmp_path: Path, finding: Finding, verdict: Verdict
) -> None:
    """Fault: only tools have known false alarms, or an entry drops what it does not name."""
    outcome = Outcome.judge(finding.check, finding.kernel, "one", [finding])
    seen = without_suppressed(outcome, loaded(tmp_path, NATIVE), SOURCE, TODAY, strict=False)
    assert seen.verdict is verdict
    assert bool(seen.suppressed) == (verdict is Verdict.CLEAN)


def test_an_unused_entry_is_reported(tmp_path: Path) -> None:
    """Fault: an entry outlives its alarm unnoticed, or is called useless where its check never ran."""
    entries = loaded(tmp_path, NATIVE)
    outcome = Outcome.judge("compare", "softmax", "one", [ALARM])
    (line,) = suppression_notes(entries, TODAY, [Outcome.judge("compare", "softmax", "one", [])])
    assert line.startswith("suppression that matched nothing: compare in softmax")
    used = without_suppressed(outcome, entries, SOURCE, TODAY, strict=False)
    assert suppression_notes(entries, TODAY, [used])[0].startswith("suppressed: ")
    assert suppression_notes(entries, TODAY, [Outcome.judge("poison", "softmax", "one", [])])[0].startswith(
        "suppressed: "
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('tool = "racecheck"', 'tool = "race"'), "tool: is not one of compare, "),
        (('reason = "the tool does not follow the phase of the barrier"', ""), "missing reason"),
        (("expires = 2027-06-30", 'expires = "soon"'), "expires: must be a date"),
        (("line = 118", 'line = "118"'), "line must be an integer"),
        (('kernel = "bulk"', 'kernel = "("'), "kernel: "),
        (('since = "2026.4"', 'since = "new"'), "since: must be a version"),
        (("[[suppression]]", '[[suppression]]\nwhy = "x"'), "unknown field why"),
        (("[[suppression]]", "[[suppression"), "suppressions.toml: "),
    ],
)
def test_a_bad_file_is_one_line_that_names_entry_and_field(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    """Fault: a misspelt entry suppresses everything or nothing."""
    with pytest.raises(SuppressionError, match=r"suppressions\.toml") as raised:
        loaded(tmp_path, ENTRY.replace(*change))
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_our_own_file_can_be_read() -> None:
    """Fault: the shipped file is broken, so that every report fails."""
    assert OWN_FILE.is_file()
    assert load_suppressions(OWN_FILE) == ()
