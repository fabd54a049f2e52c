"""Contract of cuda/flash_decode.cu: decode attention, split over the sequence, in two launches."""

from __future__ import annotations

from verify.case.attention_profiles import ATTENTION_PROFILES
from verify.case.case import Case
from verify.contract import Buffer, Contract, Intermediate, KernelOracle, Launcher, Plan, Refusal, Symbol
from verify.contracts.decode_attention import BUFFERS, SYMBOLS
from verify.oracle.attention import locate, observe_partials, reference, split_edges
from verify.oracle.attention_bounds import Numerics, attention_error_model
from verify.oracle.attention_effects import attention_effects
from verify.oracle.attention_exact import attention_exactly
from verify.oracle.attention_torch import attention_torch
from verify.oracle.tracked import Tracked


def numerics(case: Case) -> Numerics:
    """Where the kernel rounds, as the head of its source says."""
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
        ("tile", "num_splits", "heads_per_block", "workspace_bytes", "o_offset", "m_offset", "l_offset"),
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
    refusals=(
        Refusal("heads-not-a-multiple", {"NKV": "NH + 1"}),
        Refusal("head-dim-unsupported", {"D": 96}),
        Refusal("no-batch", {"B": 0}),
        Refusal("no-capacity", {"capacity": 0}),
        Refusal("window-above-capacity", {"window": "capacity + 1"}),
        Refusal("window-negative", {"window": -1}),
        Refusal("splits-negative", {"splits": -1}),
        Refusal("scale-zero", {"scale": 0.0}),
        Refusal("grid-too-large", {"B": 2, "splits": 2**31 - 1}),
        Refusal("bytes-over-size_t", {"B": 2, "k_batch": 2**62}),
        *(Refusal(f"null-{name}", null=(name,)) for name in ("q", "k", "v", "out", "lengths", "workspace")),
        *(Refusal(f"misaligned-{name}", misalign={name: 8}) for name in ("q", "k", "v", "out", "workspace")),
        Refusal("misaligned-lengths", misalign={"lengths": 2}),
        Refusal("stride-misaligned-q_row", {"B": 2, "q_row": "NH * D + 4"}),
        Refusal("stride-misaligned-out_row", {"B": 2, "out_row": "NH * D + 4"}),
        *(Refusal(f"stride-misaligned-{x}_row", {f"{x}_row": "D + 4"}) for x in "kv"),
        *(Refusal(f"stride-misaligned-{x}_head", {f"{x}_head": "capacity * D + 4"}) for x in "kv"),
        *(Refusal(f"stride-misaligned-{x}_batch", {f"{x}_batch": "NKV * capacity * D + 4"}) for x in "kv"),
        Refusal("output-rows-overlap", {"B": 2, "out_row": "NH * D - 8"}),
        Refusal("workspace-too-small", shrink={"workspace": 1}),
    ),
)  # fmt: skip
