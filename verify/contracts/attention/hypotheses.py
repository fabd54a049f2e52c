"""Faults of split decode attention that a failing comparison is tested for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from verify.contract.formats import round_to
from verify.contract.hypothesis import Hypothesis, Prediction
from verify.contract.model import Case
from verify.contracts.attention.faulty import (
    LN2,
    Faulty,
    attend,
    even_parts,
    merge_in_lanes,
    online,
    other_cache_heads,
    other_queries,
    other_slots,
)
from verify.contracts.attention.reference import (
    Head,
    attention_heads,
    band,
    is_broken,
    softmax_scale,
    split_edges,
)

Seen = Mapping[str, np.ndarray]


class _Gives:
    """What a faulty kernel gives for a case, computed when it is asked for."""

    def __init__(self, kernel: Faulty, case: Case) -> None:
        self._kernel, self._case = kernel, case

    @cached_property
    def reference(self) -> Mapping[str, np.ndarray]:
        """The quantities that the contract compares."""
        given = self._kernel.gives(self._case)
        return {name: given[name] for name in self._case.reference}


def _says(case: Case, says: str, kernel: Faulty) -> Prediction:
    return Prediction(says, _Gives(kernel, case))


def splits(case: Case, seen: Seen) -> Iterator[Prediction]:
    """Positions at the edges of splits that are lost or counted twice."""
    last = case["num_splits"] - 1

    def moved(begin: int, end: int, case: Case, head: Head) -> list[np.ndarray]:
        """Splits whose inner edges are moved by so many positions."""
        n = len(head.k)
        return [
            np.arange(max(p.start + begin * (p.start > 0), 0), min(p.stop + end * (p.stop < n), n))
            for p in head.parts
        ]

    if last:
        yield _says(
            case,
            "the last position of each split dropped where another follows",
            Faulty(parts=partial(moved, 0, -1), merged=_own_tiles),
        )
        yield _says(
            case,
            "each split's first position counted in the split before as well",
            Faulty(parts=partial(moved, 0, 1), merged=_own_tiles),
        )
        yield _says(
            case,
            "the first position of each split but the first dropped",
            Faulty(parts=partial(moved, 1, 0), merged=_own_tiles),
        )
        yield _says(
            case,
            "each split's last position counted in the next split as well",
            Faulty(parts=partial(moved, -1, 0), merged=_own_tiles),
        )


def merges(case: Case, seen: Seen) -> Iterator[Prediction]:
    """Splits that the merge loses or takes twice, and states that it weighs wrongly."""
    count = case["num_splits"]
    if count == 1:
        return
    yield _says(case, "the last split left out of the merge", _merging(lambda case, head: range(count - 1)))
    yield _says(
        case, "the merge taking each split one too early where some are empty", _merging(_splits_before)
    )
    yield _says(
        case, "the merge looking for the tiles of the whole sequence, not of the window", _merging(_of_whole)
    )
    for first in _powers(count):
        yield _says(case, f"only the first {first} splits that hold tiles merged", _merging(_first(first)))
    for split in range(min(count, 64)):
        one = partial(_without, split)
        yield _says(case, f"split {split} left out of the merge", _merging(one))
        yield _says(case, f"split {split} counted twice in the merge", _merging(partial(_twice, split)))
    yield _says(
        case,
        "the merge's exponents of base 2 where base e belongs",
        Faulty(merge=merge_in_lanes(1, LN2, 1.0), merged=_filled),
    )
    lanes = next(n for n in (2, 4, 8, 16, 32) if n >= count or n == 32)
    for words, inside, across in ((" of a lane", LN2, 1.0), (" across lanes", 1.0, LN2), ("", LN2, LN2)):
        yield _says(
            case,
            f"the merge's exponents{words} of base 2 where base e belongs, {lanes} lanes",
            Faulty(merge=merge_in_lanes(lanes, inside, across, 5), merged=_filled),
        )
    yield _says(
        case, "the merge without its rescale", Faulty(merge=merge_in_lanes(1, 0.0, 0.0), merged=_filled)
    )


def _merging(order: Callable[[Case, Head], object]) -> Faulty:
    return Faulty(merged=lambda case, head: list(order(case, head)))  # type: ignore[call-overload]


def _without(split: int, case: Case, head: Head) -> list[int]:
    return [s for s in range(case["num_splits"]) if s != split]


def _twice(split: int, case: Case, head: Head) -> list[int]:
    return [*range(case["num_splits"]), split]


def _filled(case: Case, head: Head) -> list[int]:
    """The splits that hold positions."""
    return [s for s, part in enumerate(head.parts) if part.start < part.stop] or [0]


def _first(count: int) -> Callable[[Case, Head], list[int]]:
    return lambda case, head: _filled(case, head)[:count]


def _splits_before(case: Case, head: Head) -> list[int]:
    tiles, count = -(-len(head.k) // case["tile"]), case["num_splits"]
    if not 0 < tiles <= count:
        return list(range(count))
    return [number * count // tiles for number in range(tiles)]


def _of_whole(case: Case, head: Head) -> list[int]:
    tiles, count = -(-max(int(case["len"][head.batch]), 0) // case["tile"]), case["num_splits"]
    if not 0 < tiles <= count:
        return list(range(count))
    return [((number + 1) * count - 1) // tiles for number in range(tiles)]


def _own_tiles(case: Case, head: Head) -> list[int]:
    """The splits that the merge looks for by the row's own length."""
    count = case["num_splits"]
    if is_broken(case, head.batch):
        return list(range(count))
    lo, hi = band(case, head.batch)
    tiles = -(-(hi - lo) // case["tile"])
    return list(range(count)) if tiles > count else [((i + 1) * count - 1) // tiles for i in range(tiles)]


def _powers(count: int) -> Iterator[int]:
    yield from (n for n in sorted({1, 2, 4, 5, 8, 16, 32, 64, 128, 160, 256, 512}) if n < count)


def softmax(case: Case, seen: Seen) -> Iterator[Prediction]:
    """Rescales that are missing, weights summed or stored wrongly, a maximum that starts too high."""
    for which, skipped in (
        ("the second tile", lambda tile: tile != 1),
        ("every tile", lambda tile: False),
        ("the last tiles", lambda tile: tile < 2),
    ):
        for what, step in (
            ("the sum of weights l", online(rescale_l=skipped)),
            ("the output sum O", online(rescale_o=skipped)),
            ("l and O", online(rescale_l=skipped, rescale_o=skipped)),
        ):
            yield _says(case, f"{what} not rescaled in {which} of a split", Faulty(attend=step))
    for words, past in (
        ("odd positions", lambda place: place % 2 == 1),
        ("even positions", lambda place: place % 2 == 0),
        ("positions", lambda place: place >= 0),
    ):
        yield _says(
            case,
            f"{words} past the end of the last tile counted with a score of 0",
            Faulty(attend=online(tail=past)),
        )
    for lanes in range(1, 15):
        of = [lane for lane in range(4) if lanes >> lane & 1]
        yield _says(
            case,
            f"the weights of lanes {of} of a quad alone in the sum l",
            Faulty(attend=online(summed=lambda place, of=of: np.isin(place % 8 // 2, of))),  # type: ignore[misc]
        )
    yield _says(
        case,
        "the weights rounded to bf16 before the product with V",
        Faulty(attend=online(stored=partial(round_to, "bf16"))),
    )
    yield _says(
        case,
        "the weights rounded to f16 before the product with V",
        Faulty(attend=online(stored=partial(round_to, "f16"))),
    )
    scale = softmax_scale(case)
    for words, other in (("1 / sqrt(D)", case["D"] ** -0.5), ("1", 1.0), ("1 / D", 1.0 / case["D"])):
        if not np.isclose(other, scale, rtol=1e-6):
            yield _says(
                case,
                f"the softmax scale taken for {words}, whatever is given",
                Faulty(
                    attend=partial(_scaled, float(np.float32(other))),
                    merge=merge_in_lanes(1, other / scale, other / scale),
                    merged=_filled,
                ),
            )
    held = seen["partial_lse"][np.isfinite(seen["partial_lse"])] if "partial_lse" in seen else np.zeros(0)
    for start in {-1e4, -1e5, -1e9, 0.0, -65504.0, -1e30, *np.unique(held)[:2].tolist()}:
        yield _says(
            case, f"the running maximum starting at {start:g}", Faulty(attend=online(first_top=float(start)))
        )


def _scaled(
    other: float, scores: np.ndarray, v: np.ndarray, scale: float, tile: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return attend(scores, v, other, tile)


def cache(case: Case, seen: Seen) -> Iterator[Prediction]:
    """K and V read from another head's, another row's or another slot's place."""
    group, kv_heads, capacity = case["NH"] // case["NKV"], case["NKV"], case["capacity"]
    if kv_heads > 1:
        for words, head_of in (
            ("the remainder of the query head by the KV heads", lambda head: head),
            ("the remainder of a group's first query head", lambda head: head // group * group),
            ("the next", lambda head: head // group + 1),
            ("the one before", lambda head: head // group - 1),
            ("the first", lambda head: 0),
        ):
            yield _says(
                case,
                f"{words} taken for the KV head",
                Faulty(heads=lambda case, head_of=head_of: other_cache_heads(case, head_of)),  # type: ignore[misc]
            )
    if group > 16:
        yield _says(
            case,
            "query heads past the sixteenth of a group taking the queries of its first sixteen",
            Faulty(heads=partial(other_queries, query_of=lambda number: number % 16)),
        )
    tables: tuple[tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]], ...] = (
        ("slots running on past the ring's end inside a tile", lambda start, place: start + place),
        (
            "rows that wrap inside a tile read from the slot before",
            lambda start, place: np.where(
                start + place > capacity, start + place - capacity - 1, (start + place) % capacity
            ),
        ),
        (
            "rows that wrap inside a tile read from the next slot",
            lambda start, place: np.where(
                start + place >= capacity, (start + place - capacity + 1) % capacity, start + place
            ),
        ),
        (
            "rows that wrap inside a tile read from slot 0",
            lambda start, place: np.where(start + place >= capacity, 0, start + place),
        ),
        ("every position read from the next slot", lambda start, place: (start + place + 1) % capacity),
        ("every position read from the slot before", lambda start, place: (start + place - 1) % capacity),
    )
    for words, table in tables:
        yield _says(case, words, Faulty(heads=partial(_from_slots, table)))


def _from_slots(table: Callable[[np.ndarray, np.ndarray], np.ndarray], case: Case) -> list[Head]:
    def slots(case: Case, head: Head) -> np.ndarray:
        place = np.arange(len(head.k))
        first = place // case["tile"] * case["tile"]
        return table((head.lo + first) % case["capacity"], place - first)

    return other_slots(case, slots)


def edges_of_the_band(case: Case, seen: Seen) -> Iterator[Prediction]:
    """Rows that are empty or longer than their cache, and splits without positions."""

    def first_length(case: Case) -> list[Head]:
        first = (case["len"][0],) * case["B"]
        return list(attention_heads(replace(case, symbols={**case.symbols, "len": first})))

    def overlong(case: Case, given: dict[str, np.ndarray]) -> None:
        for head in attention_heads(case):
            if head.broken:
                given["out"].reshape(case["B"], case["NH"], -1)[head.batch, head.heads] = 0.0

    def empty(case: Case, given: dict[str, np.ndarray]) -> None:
        for head in attention_heads(case):
            if not len(head.k) and not head.broken:
                given["out"].reshape(case["B"], case["NH"], -1)[head.batch, head.heads] = np.nan

    def maximum_0(case: Case, given: dict[str, np.ndarray]) -> None:
        _empty_partials(case, given, 0.0, 0.0)

    def unwritten(case: Case, given: dict[str, np.ndarray]) -> None:
        held = 0.0 if case.fill == "zero" else np.nan
        _empty_partials(case, given, held, held)

    def one_place(case: Case, given: dict[str, np.ndarray]) -> None:
        held = 0.0 if case.fill == "zero" else np.nan
        for given_of in given.values():
            given_of[0] = given_of[-1]
            given_of[1:] = held

    if case["B"] > 1:
        yield _says(
            case,
            "the length of the first row in the splits of all rows, not in the merge",
            Faulty(heads=first_length, merged=_own_tiles),
        )
    yield _says(case, "a band longer than the cache merged as an empty one", Faulty(finish=overlong))
    yield _says(case, "NaN in the output of an empty row", Faulty(finish=empty))
    yield _says(case, "a maximum of 0 in the partials of empty splits", Faulty(finish=maximum_0))
    yield _says(case, "the partials of empty splits not written", Faulty(finish=unwritten))
    if case["B"] > 1:
        yield _says(
            case, "the partials of all rows written to the place of the first", Faulty(finish=one_place)
        )


def _empty_partials(case: Case, given: dict[str, np.ndarray], output: float, logarithm: float) -> None:
    for row in range(case["B"]):
        edges = split_edges(case, row)
        none = [s for s in range(case["num_splits"]) if edges[s] == edges[s + 1]]
        given["partial_out"][row][:, none] = output
        given["partial_lse"][row][:, none] = logarithm


def positions(case: Case, seen: Seen) -> Iterator[Prediction]:
    """One position dropped or counted twice, solved for: the one whose loss comes nearest to the output."""
    if "out" not in seen:
        return
    out = seen["out"].reshape(case["B"], case["NH"], case["D"])
    right = np.asarray(case.reference["out"]).reshape(out.shape)
    moved = np.abs(np.nan_to_num(out - right)).max(-1)
    row, query = (int(i) for i in np.unravel_index(int(moved.argmax()), moved.shape))
    head = next(h for h in attention_heads(case) if h.batch == row and h.heads.start <= query < h.heads.stop)
    if head.broken or len(head.k) < 2:
        return
    scores = softmax_scale(case) * (head.q[query - head.heads.start] @ head.k.T)
    w = np.exp(scores - scores.max())
    whole, total = w @ head.v, w.sum()
    for words, sign in (("dropped", -1.0), ("counted twice", 1.0)):
        with np.errstate(divide="ignore", invalid="ignore"):
            without = (whole + sign * w[:, None] * head.v) / (total + sign * w)[:, None]
        distance = np.nan_to_num(np.abs(without - out[row, query]).max(-1), nan=np.inf)
        for index in np.argsort(distance, kind="stable")[:2]:
            position = head.lo + int(index)
            changed = Faulty(parts=partial(_without_position if sign < 0 else _with_position, position))
            yield Prediction(
                f"position {_place(case, head, position)} {words}",
                _Gives(changed, case),
                elsewhere=partial(_given_elsewhere, changed),
            )


def _given_elsewhere(kernel: Faulty, case: Case) -> _Gives:
    return _Gives(kernel, case)


def _without_position(position: int, case: Case, head: Head) -> list[np.ndarray]:
    return [part[part != position - head.lo] for part in even_parts(case, head)]


def _with_position(position: int, case: Case, head: Head) -> list[np.ndarray]:
    return [np.append(part, part[part == position - head.lo]) for part in even_parts(case, head)]


def _place(case: Case, head: Head, position: int) -> str:
    """A position in the kernel's terms."""
    edges = split_edges(case, head.batch)
    split = next(s for s in range(len(edges) - 1) if edges[s] <= position < edges[s + 1])
    lo, _ = band(case, head.batch)
    tile = (position - lo) // case["tile"] - (edges[split] - lo) // case["tile"]
    return f"{position} (split {split}, tile {tile}, slot {position % case['capacity']})"


ATTENTION_HYPOTHESES = (
    Hypothesis("position", positions),
    Hypothesis("split", splits),
    Hypothesis("merge", merges),
    Hypothesis("softmax", softmax),
    Hypothesis("cache", cache),
    Hypothesis("edge", edges_of_the_band),
)
