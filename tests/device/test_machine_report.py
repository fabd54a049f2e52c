"""A finding of the CPU device as a record."""

from __future__ import annotations

from verify.device.machine_report import MachineFinding, Site
from verify.finding.finding import SourceLine

INNER, CALL, OUTER = SourceLine("copy.cuh", 12), SourceLine("load.cuh", 40), SourceLine("kernel.cu", 77)


def site(*source: SourceLine) -> Site:
    return Site("kernel", "", source, 5, "st", None, None)


def test_a_line_of_an_inlined_function_names_its_callers() -> None:
    """Fault: a race in a helper that is called five times does not say in which of them."""
    finding = MachineFinding(
        "racecheck", False, "race", "m", "", "", 1, (site(INNER, CALL, OUTER), site(INNER, OUTER))
    )
    record = finding.record()
    assert record.source == INNER
    assert record.inlined_at == (CALL, OUTER)
    assert record.accesses == ("kernel at copy.cuh:12, inlined at kernel.cu:77",)


def test_a_line_of_the_kernel_itself_names_none() -> None:
    """Fault: every finding is said to be inlined."""
    record = MachineFinding("memcheck", False, "read", "m", "", "", 1, (site(OUTER), site())).record()
    assert (record.source, record.inlined_at) == (OUTER, ())
    assert record.accesses == ("kernel at PTX line 5",)
