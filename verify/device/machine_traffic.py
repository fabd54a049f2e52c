"""Converts the CPU device's traffic counts per launch to counts per run and buffer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from verify.device.session import Session

STAMP = "stamp_kernel"
"""The harness's kernel after each run's entry: the launches since the previous one belong to that run."""

OWN = re.compile(r"(void )?verify::|_ZN6verify")
"""The harness's other kernels (fills, transfers), whose traffic is not the entry's."""

COUNTS = ("bytes_read", "bytes_written", "sectors_read", "sectors_written")


def counters_by_run(session: Session, launches: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """``RUN/BUFFER`` -> its counts over the launches of the run; ``RUN/BUFFER/read`` -> bytes read by cell.

    A cell's key is its byte offset from the buffer's first byte, as text. Raises ValueError if launches and
    runs cannot be matched, so that no count is attributed to the wrong run.
    """
    runs = [run for run in session.results if run in session.buffers]
    groups: list[list[Mapping[str, Any]]] = [[]]
    for launch in launches:
        if STAMP in launch["kernel"]:
            groups.append([])
        elif not OWN.match(launch["kernel"]):
            groups[-1].append(launch)
    if groups[-1]:
        raise ValueError(
            f"{groups[-1][0]['kernel']} does not run on the stream that the launcher is given, so its "
            "reads cannot be attributed to a run: launch all kernels on that stream"
        )
    if len(groups) - 1 != len(runs):
        raise ValueError(
            f"the launches of {len(runs)} runs are marked as those of {len(groups) - 1}, so none can be "
            "counted: run the fixtures one by one, with -k"
        )
    counters: dict[str, dict[str, int]] = {}
    for run, group in zip(runs, groups, strict=False):
        names = {address: name for name, address in session.buffers[run].items()}
        for buffer in (b for launch in group for b in launch["buffers"]):
            name = names.get(buffer["base"])
            if name is None:
                continue
            total = counters.setdefault(f"{run}/{name}", dict.fromkeys(COUNTS, 0))
            for count in COUNTS:
                total[count] += buffer[count]
            cells = counters.setdefault(f"{run}/{name}/read", {})
            for row in buffer["rows"]:
                if not row["bytes_read"]:
                    continue
                first = row["base"] - buffer["base"]
                for offset in range(first, first + row["rows"] * row["bytes"], row["bytes"]):
                    key = str(offset)
                    cells[key] = cells.get(key, 0) + row["bytes_read"]
    return counters
