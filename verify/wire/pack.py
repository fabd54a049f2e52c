"""The files exchanged with the harness: it reads a pack and writes one output file per run.

Pack manifest (text): ``verify-pack 1``, then one line per run::

    run ID case FILE captured FILE|- mode MODE dead FILL workspace FILL output FILL shared FILL|-
        repeats N differing keep|count placement N null NAMES|- misalign NAME:BYTES,...|-
        shrink NAME:BYTES,...|-

FILE is relative to the manifest. ``placement 0`` makes each allocation begin and end with its buffer; 1 and
above put the base pointers behind a checked guard, in turn at the multiples of the promised alignment
that differ modulo 16 bytes. Which one a run gets depends on its fixture and its fill, so that a poison check,
which compares fills, also compares placements.

Case file (data only): lines of text, then binary at the offset that the last line names, little-endian::

    verify-case 1
    id KERNEL/FIXTURE/PROFILE
    sparse 0|1
    value i:INTEGER|f:HEXFLOAT          one line per slot, in the order of verify.contract.slots
    buffer NAME role in|out|inout|workspace element BYTES bytes BYTES align BYTES
           overread strict|masked read 0|1 live RUNS promised RUNS data BYTES
    fill NAME HEX                       element patterns of the buffer above, several for a hashed choice
    payload OFFSET

The payload has, for each buffer in turn, its live runs and promised runs (uint64 pairs: byte offset, byte
length), then the live runs' bytes. ``read 1`` requests all of the buffer's bytes after the run.

Output file: lines ``run``, ``mode``, ``returned`` (the error's name), ``kernels``, ``held`` (bytes of
device memory still allocated after the calls), ``shared`` (multiprocessors whose shared memory was filled),
``intrusions`` and ``differences`` (counts; the first 256 follow, one per line, as ``intrusion BUFFER OFFSET
COUNT`` and ``difference REPEAT BUFFER OFFSET COUNT``), ``data BUFFER PART BYTES``, ``payload``; then the data
in the order of their lines. PART is ``promised``, ``prior`` (the promised bytes before the call), ``second``
(the other stream's) or ``all``; with ``differing keep`` also ``first`` and ``differs-N``, the promised bytes
of the first call and of a call that differs from it, and ``second-first`` and ``second-differs-N``. Offsets
are relative to the buffer's first byte, and negative before it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from verify.contract.formats import format_of
from verify.contract.model import Buffer, Case
from verify.contract.slots import slots_of
from verify.wire.fills import fill_tables
from verify.wire.run import Run
from verify.wire.spans import LayoutError, Spans, allocation_bytes, spans_of

REFUSED_ALLOCATION = 1 << 20
"""Largest buffer, in bytes, allocated for a call that must be rejected; the harness has the same limit."""

_RUN_ID = re.compile(r"[A-Za-z0-9._+=@-]+$")
_INTEGERS = range(-(1 << 63), 1 << 64)


class PackError(ValueError):
    """A case cannot be written, or an output cannot be read; the message names it."""


@dataclass(frozen=True)
class CaseFiles:
    """Case files shared by several packs: each is written once, then linked.

    folder: their folder, created if necessary, on the same file system as the packs. Thread-safe.
    """

    folder: Path
    _written: dict[tuple[int, bool], tuple[Case, Path]] = field(default_factory=dict)

    def link(self, case: Case, refused: bool, target: Path) -> None:
        """Make ``target`` the file of a case. Raises PackError as :func:`case_bytes` does."""
        key = (id(case), refused)
        if key not in self._written:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(suffix=".case", dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(case_bytes(case, refused=refused))
            # The case is kept alive, since Python could reuse its id after it is deleted.
            self._written[key] = (case, Path(name))
        os.link(self._written[key][1], target)


def write_pack(folder: Path, runs: Sequence[Run], files: CaseFiles | None = None) -> Path:
    """Write a manifest and its case files into ``folder``, created if necessary; returns the manifest.

    Runs of one case share its file, as do packs with the same ``files``. Raises PackError for a duplicate run
    id, or one that is not a file name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names: dict[int, str] = {}
    kept: list[Case] = []

    def file_of(case: Case, refused: bool) -> str:
        if id(case) not in names:
            name = f"{len(names):04d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', case.id)}.case"
            if files is not None:
                files.link(case, refused, folder / name)
            else:
                (folder / name).write_bytes(case_bytes(case, refused=refused))
            names[id(case)] = name
            kept.append(case)  # keeps the id unique: Python could reuse it after the case is deleted
        return names[id(case)]

    lines = ["verify-pack 1"]
    seen: set[str] = set()
    for run in runs:
        if not _RUN_ID.match(run.id) or run.id in seen:
            raise PackError(f"run {run.id!r}: is used twice, or is not a file name")
        seen.add(run.id)
        captured = file_of(run.captured, False) if run.captured is not None else "-"
        lines.append(_run_line(run, file_of(run.case, run.mode == "refuse"), captured))
    manifest = folder / "manifest.pack"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def placement(run: Run) -> int:
    """0, or by which multiple of the promised alignment the base pointers are moved, counted from 1.

    Above 0 for some of the fills, so that comparing fills also compares placements. 0 for the fills that the
    tools run with: they must detect accesses just before and after a buffer. The fixtures of a contract
    together try every multiple.
    """
    moved = _MOVED.get(run.mode if run.mode == "second-call" else run.fills.dead)
    if moved is None or run.mode in ("live-only", "refuse"):
        return 0
    return 1 + (moved + crc32(run.case.fixture.encode())) % _MULTIPLES


_MOVED = {"inf": 0, "huge": 1, "second-call": 2}
"""Which fills, and which mode, move the base pointers; together they meet the three multiples of 4 bytes."""

_MULTIPLES = 15
"""Those of an alignment of one byte that differ modulo 16."""


def _run_line(run: Run, case: str, captured: str) -> str:
    def amounts(pairs: tuple[tuple[str, int], ...]) -> str:
        return ",".join(f"{name}:{count}" for name, count in pairs) or "-"

    fills = run.fills
    differing = "keep" if run.keep_differing else "count"
    absent = (b.name for b in run.case.contract.buffers if not run.case.given(b.name))
    null = ",".join(dict.fromkeys((*run.null, *absent))) or "-"
    return (
        f"run {run.id} case {case} captured {captured} mode {run.mode} dead {fills.dead} "
        f"workspace {fills.workspace} output {fills.output} shared {fills.shared or '-'} "
        f"repeats {run.repeats} differing {differing} placement {placement(run)} null {null} "
        f"misalign {amounts(run.misalign)} shrink {amounts(run.shrink)}"
    )


def case_bytes(case: Case, *, refused: bool = False) -> bytes:
    """The case file of a case.

    refused: the call must be rejected, so its sizes may be impossible: a buffer that is too large to
    allocate, or has no array, gets no data. Raises PackError naming case and buffer or value.
    """
    header = ["verify-case 1", f"id {case.id}", f"sparse {int(case.sparse)}"]
    header += [
        f"value {value_text(case.evaluate(e), f'{case.id}: {e}')}"
        for e in slots_of(case.contract).expressions
    ]
    wanted = {part.buffer for part in case.contract.intermediates}
    payload: list[bytes] = []
    for buffer in case.contract.buffers:
        fmt = format_of(case.dtype(buffer))
        shape, strides = case.shape(buffer), case.strides(buffer)
        size = min(max(allocation_bytes(shape, strides, fmt.itemsize), 0), (1 << 63) - 1)
        given = case.given(buffer.name)
        size = size if given else 0
        bare = not given or (refused and (size > REFUSED_ALLOCATION or min(shape, default=1) < 0))
        live = promised = _NOTHING
        data = b""
        if not bare:
            try:
                live, promised = _spans(case, buffer, strides, fmt.itemsize)
            except PackError:
                # An impossible layout may be exactly what the call must reject.
                if not refused:
                    raise
            if live.blocks.size and buffer.name in case.arrays:
                data = live.gather(case.arrays[buffer.name])
            elif live.blocks.size and refused:
                live = _NOTHING
            elif live.blocks.size:
                raise PackError(f"{case.id}: {buffer.name}: is an input without data")
        header.append(
            f"buffer {buffer.name} role {buffer.role} element {fmt.itemsize} bytes {size} "
            f"align {buffer.align} overread {buffer.overread or case.contract.overread} "
            f"read {int(buffer.name in wanted)} "
            f"live {len(live.spans)} promised {len(promised.spans)} data {len(data)}"
        )
        header += [f"fill {name} {table.hex()}" for name, table in fill_tables(case.dtype(buffer)).items()]
        payload += [live.spans.astype("<u8").tobytes(), promised.spans.astype("<u8").tobytes(), data]
    text = "\n".join(header) + "\n"
    # The offset is part of the text that it depends on, so it has a fixed width.
    offset = len(text.encode()) + len("payload \n") + 12
    return (text + f"payload {offset:012d}\n").encode() + b"".join(payload)


_NOTHING = Spans(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), 1)


def _spans(case: Case, buffer: Buffer, strides: tuple[int, ...], itemsize: int) -> tuple[Spans, Spans]:
    """Live and promised spans of a buffer by its role."""
    try:
        read = buffer.role in ("in", "inout")
        live = spans_of(case.live(buffer.name), strides, itemsize) if read else _NOTHING
        written = buffer.role in ("out", "inout")
        promised = spans_of(promised_mask(case, buffer), strides, itemsize) if written else _NOTHING
    except LayoutError as error:
        raise PackError(f"{case.id}: {buffer.name}: {error}") from None
    return live, promised


def promised_mask(case: Case, buffer: Buffer) -> np.ndarray:
    """Which elements of an output's view the kernel must write."""
    return case.mask(buffer, "promised")


def value_text(value: Any, where: str) -> str:
    """A scalar in the format of case files and plan requests. Raises PackError naming ``where``."""
    if isinstance(value, float | np.floating):
        return f"f:{float(value).hex()}" if np.isfinite(value) else f"f:{float(value)}"
    if isinstance(value, bool | int | np.integer) and int(value) in _INTEGERS:
        return f"i:{int(value)}"
    raise PackError(f"{where}: is {value!r}, not a number of 64 bits")
