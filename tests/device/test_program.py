"""The CPU device's runner without the machine: program files, fat binaries, reports, exit codes."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.device.machine_reports import read, report
from verify.device.elf import ProgramFile, read_program
from verify.device.fat_binary import FatBinaryError, images
from verify.device.machine_report import ReportError, merge_reports, read_report
from verify.device.program import ProgramOptions, RefusedError, check_program, machine_environment
from verify.finding.finding import Severity

PTX, MACHINE_CODE, ZSTD, LZ4 = 1, 2, 0x8000, 0x2000


def entry(kind: int, architecture: int, payload: bytes, flags: int = 0, size: int | None = None) -> bytes:
    """One entry of a fat binary, as nvcc 13 lays it out."""
    header = struct.pack("<HHIQI", kind, 0x101, 64, size if size is not None else len(payload), 0)
    header += struct.pack("<IHHIII", 0, 0, 9, architecture, 0, 0)
    header += struct.pack("<QQQ", flags, 0, 0)
    assert len(header) == 64
    return header + payload


def container(*entries: bytes) -> bytes:
    """A container around entries."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def program(fat: bytes = b"", *needed: str, relocatable: bool = False) -> ProgramFile:
    """Facts of a program with this device code."""
    return ProgramFile(needed or ("libcudart.so.13", "libc.so.6"), False, fat, relocatable)


def test_images_are_read_in_order() -> None:
    """Fault: a second container, or an entry after the first, is overlooked."""
    section = container(entry(MACHINE_CODE, 90, b"code"), entry(PTX, 90, b"text")) + container(
        entry(PTX, 80, b"older", ZSTD)
    )
    found = [(image.architecture, image.ptx, image.compression) for image in images(section)]
    assert found == [(90, False, ""), (90, True, ""), (80, True, "zstd")]


@pytest.mark.parametrize("cut", range(20, 84, 8))
def test_truncated_container_is_an_error(cut: int) -> None:
    """Fault: a container cut short is read past its end."""
    with pytest.raises(FatBinaryError, match="truncated"):
        images(container(entry(PTX, 90, b"0123456789abcdef"))[:cut])


def test_entry_longer_than_its_container_is_an_error() -> None:
    """Fault: an entry's size is not checked."""
    with pytest.raises(FatBinaryError, match="truncated"):
        images(container(entry(PTX, 90, b"text", size=1 << 40)))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (program(container(entry(PTX, 90, b"x")), "libc.so.6"), "-cudart shared"),
        (program(container(entry(PTX, 90, b"x")), "libcudart.so.12"), "CUDA 13"),
        (program(container(entry(MACHINE_CODE, 90, b"x"))), "no PTX: build with .*compute_90"),
        (program(b"\0" * 16, relocatable=True), "-rdc=true"),
        (program(container(entry(PTX, 100, b"x"))), "compute_100 only"),
        (program(container(entry(PTX, 90, b"x", LZ4))), "--no-compress"),
    ],
)
def test_program_that_cannot_run_is_refused_with_a_remedy(facts: ProgramFile, words: str) -> None:
    """Fault: a program that the machine cannot run is started, and reported as clean."""
    with pytest.raises(RefusedError, match=words):
        check_program(facts, "sm_90")


def test_right_program_is_not_refused() -> None:
    """Fault: older PTX, or no device code at all, is refused."""
    check_program(program(container(entry(PTX, 80, b"x"), entry(MACHINE_CODE, 90, b"x"))), "sm_90")
    check_program(program(b"", "libc.so.6"), "sm_90")


def test_script_is_no_program_file(tmp_path: Path) -> None:
    """Fault: a script, or a damaged ELF file, ends in a traceback."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert read_program(script) is None
    script.write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 100)
    assert read_program(script) is None


def test_finding_becomes_a_tool_record(tmp_path: Path) -> None:
    """Fault: a field of a finding is lost or swapped on its way to the checks."""
    record = read(tmp_path).findings[0].record("run-1")
    assert (record.tool, record.kind) == ("memcheck", "Invalid __global__ write of size 4 bytes")
    assert (record.function, str(record.source)) == ("scale(float*)", "a.cu:7")
    assert (record.thread, record.block, record.run) == ("(31,0,0)", "(1,0,0)", "run-1")
    assert record.severity is Severity.ERROR


def test_half_a_report_is_an_error(tmp_path: Path) -> None:
    """Fault: a report that was cut off is read as one without findings."""
    file = tmp_path / "1.json"
    file.write_text(json.dumps(report())[:-40])
    with pytest.raises(ReportError, match=r"1\.json"):
        read_report(file)
    file.write_text("{}")
    with pytest.raises(ReportError, match="KeyError"):
        read_report(file)


def test_reports_of_several_processes_add_up(tmp_path: Path) -> None:
    """Fault: a child's findings are lost, or a process that ran nothing makes the whole look idle."""
    one = read(tmp_path)
    idle = read(tmp_path, findings=[], work={"kernels": 0, "by_class": {}})
    merged = merge_reports([one, idle, one])
    assert merged is not None
    assert (merged.errors, merged.launches) == (2, 2)
    assert merge_reports([]) is None


def test_environment_puts_the_machine_first(tmp_path: Path) -> None:
    """Fault: the real runtime is found before the machine's, by LD_LIBRARY_PATH or by the program's own
    DT_RPATH."""
    library = tmp_path / "machine" / "libcudart.so.13"
    base = {"LD_LIBRARY_PATH": "/usr/local/lib", "PATH": "/bin"}
    plain = machine_environment(library, ProgramOptions(seed=5), tmp_path, base, program(), "a")
    assert plain["LD_LIBRARY_PATH"].split(":") == [str(library.parent), "/usr/local/lib"]
    assert "seed=5" in plain["VERIFY_MACHINE"].splitlines()
    assert "LD_PRELOAD" not in plain
    stubborn = ProgramFile(("libcudart.so.13",), True, b"", False)
    assert machine_environment(library, ProgramOptions(), tmp_path, base, stubborn, "a")["LD_PRELOAD"] == str(
        library
    )
