"""Contract of cuda/flash_decode.cu: decode attention, split over the sequence, in two launches."""

from __future__ import annotations

from functools import partial
from math import inf, nan

from verify.contract.compared import Intermediate, KernelOracle
from verify.contract.entries import Launcher, Refusal
from verify.contract.model import Buffer, Case, Contract, Plan
from verify.contract.symbols import Symbol
from verify.contracts.attention.bounds import Numerics, attention_error_model
from verify.contracts.attention.effects import attention_effects
from verify.contracts.attention.exact import attention_exactly
from verify.contracts.attention.hypotheses import ATTENTION_HYPOTHESES
from verify.contracts.attention.operands import BUFFERS, SYMBOLS
from verify.contracts.attention.profiles import ATTENTION_PROFILES
from verify.contracts.attention.reference import locate, observe_partials, reference, split_edges
from verify.contracts.attention.torch_parity import attention_torch
from verify.oracle.tracked import Tracked


def numerics(case: Case) -> Numerics:
    """Where the kernel rounds, as documented at the head of its source."""
    dim, tile, splits = case["D"], case["tile"], case["num_splits"]
    part = min(dim, 256)  # the dims of a score that one warp sums, in four chains
    steps = [[slice(d, d + 16) for d in range(first, first + part, 16)] for first in range(0, dim, part)]
    lanes = next(n for n in (2, 4, 8, 16, 32) if n >= splits or n == 32)
    own_splits = -(-splits // lanes)
    batches = -(-own_splits // 5)
    return Numerics(
        tile=tile,
        score_chains=[[[own[0::4], own[1::4]], [own[2::4], own[3::4]]] for own in steps],
        weight_loss=2.0**-17,
        output_steps=2 * tile // 16,
        sum_depth=1 + tile // 8 + 2,
        merge_depth=own_splits + batches + 1 + lanes // 2,
        merge_factors=1 + batches,
    )


def error_model(case: Case) -> dict[str, Tracked]:
    """Bounds of the output and of the split partials."""
    return attention_error_model(case, numerics(case))


_refused = partial(Refusal, error="cudaErrorInvalidValue")
_grid_refused = partial(Refusal, error="cudaErrorInvalidConfiguration")

CONTRACT = Contract(
    name="flash_decode",
    source="flash_decode.cu",
    symbols=(
        *SYMBOLS,
        Symbol("splits", default=0, minimum=0, doc="pinned split count, 0 to let the launcher choose"),
    ),
    buffers=(*BUFFERS, Buffer("workspace", "u8", ("workspace_bytes",), "workspace")),
    entry=Launcher(
        "flash_decode_launch",
        struct="flash_decode_args",
        args={
            "q": "q", "k": "k", "v": "v", "out": "out", "lengths": "lengths",
            "workspace": "workspace", "workspace_bytes": "bytes(workspace)",
            "batch": "B", "num_heads": "NH", "num_kv_heads": "NKV", "head_dim": "D",
            "capacity": "capacity", "window": "window", "q_stride_b": "q_row", "out_stride_b": "out_row",
            "k_stride_b": "k_batch", "k_stride_h": "k_head", "k_stride_s": "k_row",
            "v_stride_b": "v_batch", "v_stride_h": "v_head", "v_stride_s": "v_row",
            "scale": "scale", "num_splits": "splits",
        },
    ),
    plan=Plan(
        "flash_decode_plan",
        "flash_decode_plan_result",
        (
            "tile", "num_splits", "boundary_rule", "heads_per_block",
            "workspace_bytes", "o_offset", "m_offset", "l_offset",
            "max_live", "shared_bytes", "split_blocks", "merge_blocks",
        ),
        promised={
            "boundary_rule": 0,
            "heads_per_block": "min(NH // NKV, 16)",
            "max_live": "min(window + capacity * (window == 0), 2**31 - 1)",
            "m_offset": "o_offset + 4 * B * NH * num_splits * D",
            "l_offset": "m_offset + round_up(4 * B * NH * num_splits, 16)",
            "workspace_bytes": "l_offset + round_up(4 * B * NH * num_splits, 16)",
            "split_blocks": "B * NKV * ceil_div(NH // NKV, heads_per_block) * num_splits",
            "merge_blocks": "B * NH * D // 64",
            "shared_bytes": "3 * 2 * tile * D * 2 + 4 * 32 * 16",
        },
        boundaries=split_edges,
        slot=lambda case, position: position % case["capacity"],
    ),
    intermediates=(
        Intermediate("o", "workspace", "f32", ("B", "NH", "num_splits", "D"), "o_offset"),
        Intermediate("m", "workspace", "f32", ("B", "NH", "num_splits"), "m_offset"),
        Intermediate("l", "workspace", "f32", ("B", "NH", "num_splits"), "l_offset"),
    ),
    reference=reference,
    error_model=error_model,
    observe=observe_partials,
    effects=attention_effects,
    hypotheses=ATTENTION_HYPOTHESES,
    exact_reference=attention_exactly,
    exact=(("coded", "partial_out"), ("coded", "partial_lse")),
    profiles=ATTENTION_PROFILES,
    axes={
        "out": ("batch", "column"),
        "partial_out": ("batch", "head", "split", "dim"),
        "partial_lse": ("batch", "head", "split"),
    },
    locate=locate,
    parity={"torch": attention_torch, "cuBLASLt pipeline": KernelOracle("decode_pipeline")},
    batch="B",
    pinned={"splits": "num_splits"},
    captured_at={"len": 1},
    row_reads={
        "k": "ceil_div(NH // NKV, heads_per_block)",
        "v": "ceil_div(NH // NKV, heads_per_block)",
    },
    instantiations={f"attend_split<{dim}>": f"D == {dim}" for dim in (64, 128, 256, 512)},
    refusals=(
        _refused("null-arguments", null=("flash_decode_args",)),
        _refused("no-heads", {"NH": 0}),
        _refused("no-kv-heads", {"NKV": 0}),
        _refused("more-kv-heads-than-heads", {"NKV": "NH + 1"}),
        _refused("heads-with-a-remainder", {"NH": 3, "NKV": 2}),
        *(_refused(f"head-dim-{d}", {"D": d}) for d in (-64, 0, 32, 96, 192, 320, 384, 1024)),
        _refused("no-batch", {"B": 0}),
        _refused("no-capacity", {"capacity": 0}),
        _refused("window-above-capacity", {"window": "capacity + 1"}),
        _refused("window-negative", {"window": -1}),
        _refused("splits-negative", {"splits": -1}),
        *(
            _refused(f"scale-{name}", {"scale": value})
            for name, value in (
                ("zero", 0.0), ("negative", -0.125), ("subnormal", 1e-40), ("infinite", inf), ("nan", nan),
            )
        ),
        # Grids that would be small if truncated to 32 bits.
        _grid_refused("split-grid-too-large", {"B": 3, "splits": (2**32 + 2) // 3}),
        _grid_refused("merge-grid-too-large", {"NH": 2**29 + 1, "D": 512, "splits": 1}),
        *(_refused(f"null-{x}", null=(x,)) for x in ("q", "k", "v", "out", "lengths", "workspace")),
        *(
            _refused(f"misaligned-{x}-by-{by}", misalign={x: by})
            for x in ("q", "k", "v", "out", "workspace") for by in (1, 2, 4, 8)
        ),
        *(_refused(f"misaligned-lengths-by-{by}", misalign={"lengths": by}) for by in (1, 2)),
        *(_refused(f"{x}_row-misaligned", {"B": 2, f"{x}_row": "NH * D + 4"}) for x in ("q", "out")),
        *(_refused(f"{x}_row-misaligned", {f"{x}_row": "D + 4"}) for x in "kv"),
        *(
            _refused(f"{x}_head-misaligned", {f"{x}_head": "capacity * D + 4", f"{x}_batch": 8})
            for x in "kv"
        ),
        *(_refused(f"{x}_batch-misaligned", {f"{x}_batch": "NKV * capacity * D + 4"}) for x in "kv"),
        # A single row, so that only the sign is wrong.
        *(_refused(f"{x}_row-negative", {f"{x}_row": -8}) for x in ("q", "out")),
        *(_refused(f"{x}_row-negative", {"capacity": 1, f"{x}_row": -8, f"{x}_head": 8}) for x in "kv"),
        *(_refused(f"{x}_head-negative", {f"{x}_head": -8, f"{x}_batch": 8}) for x in "kv"),
        *(_refused(f"{x}_batch-negative", {f"{x}_batch": -8}) for x in "kv"),
        *(_refused(f"{x}_row-beyond-memory", {"B": 2, f"{x}_row": 2**62}) for x in ("q", "out")),
        *(_refused(f"{x}_batch-beyond-memory", {"B": 2, f"{x}_batch": 2**62}) for x in "kv"),
        # An offset that would be 0 if truncated to 64 bits.
        *(
            _refused(f"{x}_row-beyond-64-bits", {"capacity": 2**32 + 1, f"{x}_row": 2**32, f"{x}_head": 8})
            for x in "kv"
        ),
        _refused("output-rows-overlap", {"B": 2, "out_row": "NH * D - 8"}),
        _refused("workspace-too-small", shrink={"workspace": 1}),
    ),
)  # fmt: skip
