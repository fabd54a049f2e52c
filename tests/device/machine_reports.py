"""A report of the CPU device as its JSON says it, with what a test changes of it."""

from __future__ import annotations

import json
from pathlib import Path

from verify.device.machine_report import MachineReport, read_report


def report(**changes: object) -> dict[str, object]:
    """A report as the machine writes it, with some members changed."""
    site = {
        "kernel": "scale(float*)",
        "source": [{"file": "a.cu", "line": 7, "function": ""}],
        "ptx_line": 30,
        "ptx": "st.global.f32 [%rd1], %f1",
        "block": [1, 0, 0],
        "thread": [31, 0, 0],
    }
    finding = {
        "check": "memcheck",
        "level": "error",
        "kind": "Invalid __global__ write of size 4 bytes",
        "message": "past the end",
        "remedy": "",
        "address": "buffer + 128",
        "count": 2,
        "sites": [site],
    }
    return {
        "version": 1,
        "tools": ["memcheck"],
        "architecture": "sm_90",
        "seed": 0,
        "program": "a",
        "refused": "",
        "errors": 1,
        "warnings": 0,
        "findings": [finding],
        "notes": [],
        "work": {"kernels": 1, "thread_instructions": 64, "bytes_checked": 256, "by_class": {"move": 2}},
        "traffic": [],
        **changes,
    }


def read(tmp_path: Path, **changes: object) -> MachineReport:
    """The report, through a file."""
    file = tmp_path / "1.json"
    file.write_text(json.dumps(report(**changes)))
    return read_report(file)
