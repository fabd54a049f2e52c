"""The output file that the harness writes for each run; :mod:`verify.wire.pack` describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from verify.contract.formats import format_of
from verify.contract.model import Case
from verify.wire.pack import PackError, promised_mask
from verify.wire.spans import spans_of


@dataclass(frozen=True)
class Intrusion:
    """Changed bytes that had to stay unchanged. offset: from the buffer's first byte, negative before it."""

    buffer: str
    offset: int
    count: int


@dataclass(frozen=True)
class Difference:
    """Bytes of an output in which a repeat (or the other stream) differs from the first call."""

    repeat: int
    buffer: str
    offset: int
    count: int


@dataclass(frozen=True)
class Differing:
    """The outputs of the first call and of one call that differs. second: those of the other stream."""

    repeat: int
    first: Mapping[str, np.ndarray]
    other: Mapping[str, np.ndarray]
    second: bool = False


@dataclass(frozen=True)
class RunOutput:
    """The results of a run.

    outputs: storage arrays of the view's shape, by output buffer; elements that are not promised are zero.
    prior: the same before the call; None if the outputs were not filled (``live-only``).
    second: the outputs of the other stream (``two-streams``) or thread (``two-threads``). workspaces: all
    bytes of the buffers that intermediates are views of. returned: the error name that the entry returned.
    intrusions, differences: the first 256 of each; intrusion_count, difference_count: their total numbers.
    held: bytes of device memory that calls after the first allocated and did not free (``many-calls``).
    differing: the calls that differ, for a run that keeps them.
    """

    run: str
    mode: str
    returned: str
    kernels: int
    shared_dirty: int
    outputs: Mapping[str, np.ndarray]
    prior: Mapping[str, np.ndarray] | None
    workspaces: Mapping[str, bytes]
    second: Mapping[str, np.ndarray] = field(default_factory=dict)
    intrusions: tuple[Intrusion, ...] = ()
    intrusion_count: int = 0
    differences: tuple[Difference, ...] = ()
    difference_count: int = 0
    held: int = 0
    differing: tuple[Differing, ...] = ()


def read_output(path: Path, case: Case) -> RunOutput:
    """Read a run's output file. Raises PackError if it is not one, or is truncated."""
    content = path.read_bytes()
    head, mark, payload = content.partition(b"\npayload\n")
    lines = head.decode().split("\n")
    if not mark or lines[0] != "verify-output 1":
        raise PackError(f"{path}: is not an output file of version 1")
    single: dict[str, str] = {}
    intrusions, differences = [], []
    parts: list[tuple[str, str, int]] = []
    for line in lines[1:]:
        key, *rest = line.split(" ")
        match key:
            case "intrusion":
                intrusions.append(Intrusion(rest[0], int(rest[1]), int(rest[2])))
            case "difference":
                differences.append(Difference(int(rest[0]), rest[1], int(rest[2]), int(rest[3])))
            case "data":
                parts.append((rest[0], rest[1], int(rest[2])))
            case _:
                single[key] = " ".join(rest)
    held: dict[str, dict[str, bytes]] = {part: {} for part in ("promised", "prior", "second", "all")}
    position = 0
    for name, part, size in parts:
        held.setdefault(part, {})[name] = payload[position : position + size]
        position += size
    if position != len(payload):
        raise PackError(f"{path}: has {len(payload)} bytes of data, but its header says {position}")
    return RunOutput(
        run=single["run"],
        mode=single["mode"],
        returned=single["returned"],
        kernels=int(single["kernels"]),
        shared_dirty=int(single["shared"]),
        outputs=_views(case, held["promised"]),
        prior=_views(case, held["prior"]) if held["prior"] else None,
        workspaces=held["all"],
        second=_views(case, held["second"]),
        intrusions=tuple(intrusions),
        intrusion_count=int(single["intrusions"]),
        differences=tuple(differences),
        difference_count=int(single["differences"]),
        held=int(single["held"]),
        differing=tuple(_differing(case, held)),
    )


def _differing(case: Case, held: Mapping[str, Mapping[str, bytes]]) -> Iterator[Differing]:
    for part, data in held.items():
        whose, mark, repeat = part.rpartition("differs-")
        if mark:
            first = _views(case, held[f"{whose}first"])
            yield Differing(int(repeat), first, _views(case, data), second=whose != "")


def _views(case: Case, data: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    views = {}
    for name, promised in data.items():
        buffer = case.contract.buffer(name)
        fmt = format_of(case.dtype(buffer))
        selected = spans_of(promised_mask(case, buffer), case.strides(buffer), fmt.itemsize)
        views[name] = selected.scatter(promised, fmt.dtype, case.shape(buffer))
    return views
