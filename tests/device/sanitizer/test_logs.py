"""compute-sanitizer's logs, recorded on an H200 by ``record_logs.py``, are read for what they say."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from verify.device.interface import Tool
from verify.device.sanitizer.log import SanitizerLog, bare_name
from verify.device.sanitizer.proof import doubt_of_process
from verify.device.sanitizer.read_log import read_logs
from verify.device.sanitizer.text_log import text_records
from verify.device.sanitizer.xml_log import xml_records
from verify.device.session import ProcessEnd

LOGS = Path(__file__).parents[1] / "logs"
TRIPWIRES = Path(__file__).parents[3] / "verify" / "device" / "sanitizer" / "tripwires"


@dataclass(frozen=True)
class Recorded:
    """The files of one recording, unpacked."""

    tool: Tool
    text: Path
    xml: Path
    end: dict[str, Any]

    @property
    def log(self) -> SanitizerLog:
        log = read_logs(self.tool, self.text, self.xml)
        assert log is not None
        return log

    @property
    def process(self) -> ProcessEnd:
        return ProcessEnd((), self.end["code"], False, ("r",), ("r",), (), self.text, 1.0)


def recorded(folder: Path, version: str, tool: Tool, name: str) -> Recorded:
    """Copy a recording to ``folder``, unpacking what is kept compressed."""
    for extension in ("txt", "xml", "json"):
        source = LOGS / version / tool / f"{name}.{extension}"
        packed = source.with_name(f"{source.name}.gz")
        if packed.is_file():
            (folder / source.name).write_bytes(gzip.decompress(packed.read_bytes()))
        elif source.is_file():
            (folder / source.name).write_bytes(source.read_bytes())
    end = json.loads((folder / f"{name}.json").read_text())
    return Recorded(tool, folder / f"{name}.txt", folder / f"{name}.xml", end)


ALL = sorted((path.parts[-3], path.parts[-2], path.name.split(".")[0]) for path in LOGS.glob("*/*/*.json*"))


def test_there_are_recordings_of_every_tool_and_of_two_versions() -> None:
    """Fault: an empty folder makes every test below pass."""
    assert {tool for _, tool, _ in ALL} == {"memcheck", "initcheck", "racecheck", "synccheck"}
    assert {version for version, _, _ in ALL} == {"2025.3.1", "2026.4.0"}


API = "Program hit {} on CUDA API call to {}"
LAUNCH_FAILURE = 'cudaErrorLaunchFailure (error 719) due to "unspecified launch failure"'
NO_MEMORY = 'cudaErrorMemoryAllocation (error 2) due to "out of memory"'
WAIT = "RAW hazard (invalid memcpy_async synchronization)"

Row = tuple[str, str, str | None, int | None]
EXPECTED: list[tuple[Tool, str, list[Row]]] = [
    (
        "memcheck",
        "nested",
        [("error", "Invalid __global__ read of size 4 bytes", "nested_out_of_bounds", 24)],
    ),
    (
        "memcheck",
        "two_kernels",
        [
            ("error", "Invalid __global__ write of size 4 bytes", "misaligned_write", 29),
            ("error", "Invalid __shared__ read of size 4 bytes", "shared_out_of_bounds", 35),
        ],
    ),
    (
        "memcheck",
        "trap",
        [
            ("error", "Trace/breakpoint trap", "trap", 67),
            ("error", API.format(LAUNCH_FAILURE, "cudaDeviceSynchronize"), None, None),
        ],
    ),
    ("memcheck", "api_error", [("error", API.format(NO_MEMORY, "cudaMalloc"), None, None)]),
    ("racecheck", "same_value", []),
    ("racecheck", "right", []),
    (
        "racecheck",
        "overlapping_writes",
        [("error", "WAW hazard", "overlapping_writes", 54), ("error", "race", "overlapping_writes", 54)],
    ),
    (
        "racecheck",
        "missing_syncwarp",
        [("error", "RAW hazard", "missing_syncwarp", 48), ("warning", "race", "missing_syncwarp", 48)],
    ),
    (
        "racecheck",
        "tripwire_racecheck_async",
        [
            ("error", WAIT, "missing_wait", 12),
            ("error", "RAW hazard", "missing_wait", 12),
            ("error", "race", "missing_wait", 12),
        ],
    ),
    (
        "synccheck",
        "invalid_syncwarp",
        [("error", "Barrier error: Invalid arguments", "invalid_syncwarp", 62)],
    ),
    (
        "initcheck",
        "tripwire_initcheck_shared",
        [("error", "Uninitialized __shared__ memory read of size 4 bytes", "read_unstaged", 11)],
    ),
]


@pytest.mark.parametrize(("tool", "name", "expected"), EXPECTED, ids=[f"{t}-{n}" for t, n, _ in EXPECTED])
def test_records_have_level_kind_kernel_and_line(
    tmp_path: Path, tool: Tool, name: str, expected: list[Row]
) -> None:
    """Fault: a record is lost, invented, given the wrong level, or blamed on another line or kernel."""
    log = recorded(tmp_path, "2026.4.0", tool, name).log
    found = [(str(r.severity), r.kind, r.function, r.source.line if r.source else None) for r in log.records]
    assert found == expected


@pytest.mark.parametrize(("version", "tool", "name"), ALL)
def test_both_formats_agree_and_count_what_the_summary_counts(
    tmp_path: Path, version: str, tool: Tool, name: str
) -> None:
    """Fault: one reader misses a form that the other knows, so that a broken XML changes the findings."""
    one = recorded(tmp_path, version, tool, name)
    log = one.log
    if log.errors is None:
        assert not one.xml.is_file()
        return
    assert log.seen == (log.errors, log.warnings)
    fields = ("function", "source", "thread", "block", "address", "accesses")
    pairs = zip(text_records(tool, one.text), xml_records(tool, one.xml), strict=True)
    for spoken, structured in pairs:
        assert {f: getattr(spoken.record, f) for f in fields} == {f: getattr(structured, f) for f in fields}


@pytest.mark.parametrize(("version", "tool", "name"), [a for a in ALL if a[2].startswith("tripwire_")])
def test_a_tripwire_is_reported_on_its_marked_line(
    tmp_path: Path, version: str, tool: Tool, name: str
) -> None:
    """Fault: a tripwire whose marked line is not where the tool reports it, so that it can never trip."""
    source = TRIPWIRES / f"{name.removeprefix('tripwire_')}.cu"
    marked = [n for n, line in enumerate(source.read_text().splitlines(), 1) if line.endswith("// fault")]
    log = recorded(tmp_path, version, tool, name).log
    lines = {r.source.line for r in log.records if r.source}
    if version == "2025.3.1" and name == "tripwire_initcheck_shared":
        assert lines == set()  # that release does not look at shared memory
    else:
        assert set(marked) <= lines


@pytest.mark.parametrize("tool", ["memcheck", "initcheck", "racecheck", "synccheck"])
def test_a_clean_log_leaves_no_doubt(tmp_path: Path, tool: Tool) -> None:
    """Fault: the verdict clean can never be reached."""
    one = recorded(tmp_path, "2026.4.0", tool, "right")
    assert one.log.records == ()
    assert doubt_of_process(one.process, one.log) == ""


@pytest.mark.parametrize(
    ("tool", "name"), [(t, n) for v, t, n in ALL if v == "2026.4.0" and n in ("nested", "overlapping_writes")]
)
def test_a_log_with_records_and_the_error_exit_code_leaves_no_doubt(
    tmp_path: Path, tool: Tool, name: str
) -> None:
    """Fault: real findings count as a broken tool."""
    one = recorded(tmp_path, "2026.4.0", tool, name)
    assert doubt_of_process(one.process, one.log) == ""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("abort", "didn't terminate successfully"),
        ("exit_code", "returned an error"),
        ("no_cuda", "terminated before first instrumented API call"),
    ],
)
def test_a_program_that_failed_or_never_reached_the_gpu_is_in_doubt(
    tmp_path: Path, name: str, says: str
) -> None:
    """Fault: "0 errors" of a program that crashed, or did nothing, passes for clean."""
    one = recorded(tmp_path, "2026.4.0", "memcheck", name)
    assert says in doubt_of_process(one.process, one.log)


def test_doubt_without_summary_with_wrong_count_and_with_wrong_exit_code(tmp_path: Path) -> None:
    """Fault: a truncated log, a lost record, or an exit code that disagrees, passes for clean."""
    clean = recorded(tmp_path, "2026.4.0", "memcheck", "right")
    whole = clean.text.read_text()
    clean.text.write_text(whole.replace("ERROR SUMMARY: 0 errors", ""))
    assert "no summary line" in doubt_of_process(clean.process, clean.log)
    clean.text.write_text(whole.replace("0 errors", "2 errors"))
    assert "its summary says" in doubt_of_process(clean.process, clean.log)
    clean.text.write_text(whole)
    clean.end["code"] = 1
    assert "reported nothing but ended with exit code 1" in doubt_of_process(clean.process, clean.log)
    faulty = recorded(tmp_path, "2026.4.0", "memcheck", "nested")
    faulty.end["code"] = 0
    assert "reported 1 records but ended with exit code 0" in doubt_of_process(faulty.process, faulty.log)


def test_a_log_cut_by_the_print_limit_keeps_its_count_and_is_in_doubt(tmp_path: Path) -> None:
    """Fault: the line with the number of unprinted records counts as the summary, or as a record."""
    one = recorded(tmp_path, "2026.4.0", "memcheck", "two_kernels")
    cut = "errors were not printed. Use --print-limit option to adjust the number of printed errors"
    text = one.text.read_text().replace("9 errors", f"12 errors\n========= ERROR SUMMARY: 3 {cut}")
    one.text.write_text(text)
    assert (one.log.errors, len(one.log.records)) == (12, 2)
    assert "its summary says" in doubt_of_process(one.process, one.log)


@pytest.mark.parametrize("damage", ["truncated", "absent", "other root"])
def test_a_broken_xml_log_loses_no_record(tmp_path: Path, damage: str) -> None:
    """Fault: the tool died while it wrote its XML, and the records of the text log go with it."""
    one = recorded(tmp_path, "2026.4.0", "memcheck", "two_kernels")
    whole = one.log
    if damage == "truncated":
        one.xml.write_bytes(one.xml.read_bytes()[:2000])
    elif damage == "absent":
        one.xml.unlink()
    else:
        one.xml.write_text("<html/>")
    assert one.log == whole


def test_no_text_log_is_no_log(tmp_path: Path) -> None:
    """Fault: a tool that never started passes for one that found nothing."""
    assert read_logs("memcheck", tmp_path / "absent.txt", tmp_path / "absent.xml") is None


@pytest.mark.parametrize(
    ("demangled", "name"),
    [
        ("void <unnamed>::nested<float, (int)64>(const T1 *, T1 *)", "nested"),
        ("missing_barrier(const float *, float *)", "missing_barrier"),
        ("a::Chooser<(bool)1>::Copy<(unsigned long)16>::cp_async(void *, const void *)", "cp_async"),
        ("kernel", "kernel"),
        ("(anonymous namespace)::kernel(int)", "kernel"),
    ],
)
def test_a_demangled_name_is_cut_to_the_function(demangled: str, name: str) -> None:
    """Fault: the two formats name one kernel in two ways."""
    assert bare_name(demangled) == name
