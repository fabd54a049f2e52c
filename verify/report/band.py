"""Draws a fixture's live band as text: live and dead slots, the wrap, split and tile edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify.contract.model import Buffer, Case

LEGEND = "█ live   ▒ part live   · dead   | split edge   ' tile edge   > wrap to slot 0"
_WIDTH = 96


def draw(case: Case, width: int = _WIDTH) -> Iterator[str]:
    """Lines for every input with a live mask, one bar per batch row.

    A bar shows the slots of the axis along which the mask varies; one character covers one or more slots.
    """
    masked = [b for b in case.contract.buffers if b.live is not None and case.given(b.name)]
    drawn: dict[bytes, str] = {}
    for buffer in masked:
        mask = case.live(buffer.name)
        key = mask.tobytes()
        if key in drawn:
            yield f"{buffer.name}: as {drawn[key]}"
            continue
        drawn[key] = buffer.name
        yield from _draw_buffer(case, buffer, mask, width)
    if not masked:
        yield "every element of every input is live"


def _draw_buffer(case: Case, buffer: Buffer, mask: np.ndarray, width: int) -> Iterator[str]:
    axis = _varying_axis(mask)
    slots = np.moveaxis(mask, axis, -1)
    per_row = np.asarray(slots.reshape(mask.shape[0] if axis else 1, -1, mask.shape[axis]).any(axis=1))
    count = mask.shape[axis]
    scale = max(1, -(-count // width))
    unit = "slot" if scale == 1 else f"{scale} slots"
    yield f"{buffer.name}: {count} slots along axis {axis}, one character = {unit}"
    for row, live in enumerate(per_row):
        bar = "".join(_shade(live[i : i + scale]) for i in range(0, count, scale))
        yield f"  row {row:<3} {bar}  {int(live.sum())} live"
        marks = _marks(case, row, count, scale)
        if marks is not None:
            line, text = marks
            yield f"          {line}"
            yield f"          {text}"


def _varying_axis(mask: np.ndarray) -> int:
    """The innermost axis along which the mask is not constant; the first if it is constant."""
    for axis in reversed(range(mask.ndim)):
        if (mask != np.take(mask, [0], axis=axis)).any():
            return axis
    return 0


def _shade(part: np.ndarray) -> str:
    return "█" if part.all() else "▒" if part.any() else "·"


def _marks(case: Case, row: int, count: int, scale: int) -> tuple[str, str] | None:
    plan = case.contract.plan
    if plan is None or plan.boundaries is None or plan.slot is None:
        return None
    edges = plan.boundaries(case, row)
    low, end = edges[0], edges[-1]
    cells = [" "] * -(-count // scale)
    tile = case.plan.get("tile", 0)

    def put(position: int, mark: str) -> None:
        if low <= position < end and plan.slot is not None:
            cells[plan.slot(case, position) // scale] = mark

    if tile:
        for position in range(low, end, tile):
            put(position, "'")
    for position in edges:
        put(position, "|")
    wraps = [p for p in range(low + 1, end) if plan.slot(case, p) == 0]
    for position in wraps:
        put(position, ">")
    splits = sum(b > a for a, b in zip(edges, edges[1:], strict=False))
    text = f"positions {low}..{end - 1}" if end > low else "empty band"
    text += f", {splits} of {len(edges) - 1} splits non-empty" + (f", tile {tile}" if tile else "")
    return "".join(cells), text + (f", wraps at position {wraps[0]}" if wraps else "")
