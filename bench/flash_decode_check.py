"""A quick check that a build of flash decoding is right, before it is timed.

The real verification is `verify`; this only keeps wrong variants out of the timings.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from flash_decode_library import Library, partials


@dataclass(frozen=True)
class Problem:
    """One launch. `lengths` has one entry per sequence; `pitch` pads the rows of the caches."""

    lengths: tuple[int, ...]
    num_heads: int
    num_kv_heads: int
    head_dim: int
    capacity: int
    window: int
    num_splits: int
    pitch: int = 0


def problems(seed: int) -> Iterator[Problem]:
    """Every head dim with every group, over lengths at tile, window, wrap and capacity edges."""
    rng = random.Random(seed)
    dims, groups, kinds = (64, 128, 256, 512), (1, 2, 4, 7, 8, 16, 24), ("unbounded", "ring", "window")
    for head_dim, group, kind in itertools.product(dims, groups, kinds):
        capacity = rng.choice((5, 31, 32, 48, 100, 257, 1000))
        if kind == "unbounded":
            window, longest = 0, capacity
        else:
            window = capacity if kind == "ring" else rng.randint(1, capacity)
            longest = 10 * capacity
        edges = (0, 1, 15, 16, 17, 31, 32, 33, 95, 96, 97, capacity - 1, capacity, -3)
        inside = [length for length in edges if length <= longest]
        batch = rng.choice((1, 3))
        lengths = tuple(rng.choice((rng.choice(inside), rng.randint(0, longest))) for _ in range(batch))
        num_kv_heads = rng.choice((1, 2, 3))
        yield Problem(
            lengths,
            group * num_kv_heads,
            num_kv_heads,
            head_dim,
            capacity,
            window,
            num_splits=rng.choice((0, 1, 2, 3, 33, 70)),
            pitch=rng.choice((0, 8, 64)),
        )


def band(problem: Problem, length: int) -> range:
    """The live positions of a sequence."""
    length = max(length, 0)
    return range(max(0, length - problem.window) if problem.window else 0, length)


def check(library: Library, problem: Problem, seed: int, coded: bool) -> list[str]:
    """The errors of one launch, one line each. Dead slots, workspace and output are NaN beforehand."""
    generator = torch.Generator("cuda").manual_seed(seed)
    batch, heads, kv_heads = len(problem.lengths), problem.num_heads, problem.num_kv_heads
    dim, group, scale = problem.head_dim, heads // kv_heads, problem.head_dim**-0.5

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device="cuda").to(torch.bfloat16)

    def integers(*shape: int) -> torch.Tensor:
        return torch.randint(0, 200, shape, generator=generator, device="cuda").to(torch.bfloat16)

    q = normal(batch, heads, dim) * (0 if coded else 1)
    cache = (batch, kv_heads, problem.capacity, dim + problem.pitch)
    k = torch.full(cache, float("nan"), device="cuda", dtype=torch.bfloat16)[..., :dim]
    v = torch.full(cache, float("nan"), device="cuda", dtype=torch.bfloat16)[..., :dim]
    slots = []
    for row, length in enumerate(problem.lengths):
        live_slots = [position % problem.capacity for position in band(problem, length)]
        slots.append(torch.tensor(live_slots, device="cuda", dtype=torch.long))
        k[row, :, slots[row]] = normal(kv_heads, len(live_slots), dim)
        v[row, :, slots[row]] = (integers if coded else normal)(kv_heads, len(live_slots), dim)
    out = torch.full((batch, heads, dim), float("nan"), device="cuda", dtype=torch.bfloat16)
    lengths = torch.tensor(problem.lengths, device="cuda", dtype=torch.int32)
    args = library.arguments(
        q, k, v, lengths, out, window=problem.window, scale=scale, num_splits=problem.num_splits
    )
    plan = library.plan(args)
    workspace = torch.full((plan.workspace_bytes,), 255, device="cuda", dtype=torch.uint8)
    library.launch(args, workspace)
    torch.cuda.synchronize()

    wrong = []
    state = partials(args, plan, workspace)
    tolerance = 0.0 if coded else 2e-5
    for row, length in enumerate(problem.lengths):
        live = len(band(problem, length))
        keys = k[row, :, slots[row]].double().repeat_interleave(group, 0)
        values = v[row, :, slots[row]].double().repeat_interleave(group, 0)
        score = torch.einsum("hd,hpd->hp", q[row].double(), keys)
        tiles = -(-live // plan.tile)
        edges = [s * tiles // plan.num_splits * plan.tile for s in range(plan.num_splits + 1)]
        full = [first < last for first, last in itertools.pairwise(edges)]
        if bool(((state.l[row] != 0).any(0) != torch.tensor(full, device="cuda")).any()):
            wrong.append(f"row {row}: the empty splits are not those of the plan")
        for split in itertools.compress(range(plan.num_splits), full):
            part = slice(edges[split], edges[split + 1])
            weight = torch.exp((score[:, part] - state.m[row, :, split, None].double()) * scale)[:, None]
            o, o_abs = (weight @ values[:, part])[:, 0], (weight @ values[:, part].abs())[:, 0]
            o_error = (state.o[row, :, split].double() - o).abs()
            l_error = (state.l[row, :, split].double() - weight.sum((1, 2))).abs()
            if not bool(
                (o_error <= tolerance * o_abs).all() & (l_error <= tolerance * weight.sum((1, 2))).all()
            ):
                worst = float((o_error / o_abs).nan_to_num(1e9).max())
                wrong.append(
                    f"row {row} split {split}: O off by {worst:.2e}, l by {float(l_error.max()):.2e}"
                )
        expected = magnitude = torch.zeros(heads, dim, device="cuda", dtype=torch.float64)
        if live:
            weight = torch.softmax(score * scale, 1)[:, None]
            expected, magnitude = (weight @ values)[:, 0], (weight @ values.abs())[:, 0]
        error = (out[row].double() - expected).abs()
        if not bool((error <= 2**-8 * expected.abs() + 2e-5 * magnitude).all()):
            wrong.append(f"row {row} (length {length}): output off by {float(error.max()):.3e}")
    return wrong


def overlong(library: Library) -> list[str]:
    """A band that cannot fit its cache makes its own row NaN and no other."""
    q, out = (torch.ones(3, 4, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    k, v = (torch.ones(3, 2, 40, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    lengths = torch.tensor([40, 41, 2**31 - 1], device="cuda", dtype=torch.int32)
    args = library.arguments(q, k, v, lengths, out, scale=0.1)
    library.launch(args, torch.empty(library.plan(args).workspace_bytes, device="cuda", dtype=torch.uint8))
    right = bool((out[0] == 1).all() and out[1:].isnan().all())
    return [] if right else ["an overlong band is not NaN, or spoils another row"]


def failures(library: Library, seed: int = 1) -> list[str]:
    """The errors of a build, one line each. Raises RuntimeError if there is nothing to judge."""
    wrong = overlong(library)
    count = 0
    for problem in problems(seed):
        for coded in (False, True):
            count += 1
            wrong += [f"{problem} coded={coded}: {line}" for line in check(library, problem, count, coded)]
    if count == 0:
        raise RuntimeError("no problem was checked")
    return wrong
