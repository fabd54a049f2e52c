"""Contract of cuda/decode_pipeline.cu: the library pipeline that flash decoding replaced, as an oracle.

It reads the whole allocation and masks afterwards, so it holds for finite dead slots only.
"""

from __future__ import annotations

from verify.case.attention_profiles import ATTENTION_PROFILES
from verify.contract import Buffer, Contract, Launcher, Plan, Refusal, Symbol
from verify.oracle.attention import live_slots
from verify.oracle.attention_pipeline import pipeline_error_model, pipeline_reference

CACHE = ("B", "NKV", "capacity", "D")

CONTRACT = Contract(
    name="decode_pipeline",
    source="decode_pipeline.cu",
    symbols=(
        Symbol("B", minimum=1, doc="sequences"),
        Symbol("NH", minimum=1, doc="query heads"),
        Symbol("NKV", minimum=1, doc="KV heads; divides NH"),
        Symbol("D", minimum=1, doc="head dimension"),
        Symbol("capacity", minimum=1, doc="cache slots a sequence and KV head"),
        Symbol("window", default=0, minimum=0, doc="sliding window, 0 for none"),
        Symbol("len", "ints", doc="length of each sequence; below 0 counts as 0"),
        Symbol("scale", "float", default="1 / sqrt(D)", doc="softmax scale"),
        Symbol("tile", default=32, minimum=1, doc="by which the data profiles place their edges"),
        Symbol("num_splits", default=1, minimum=1, doc="by which the data profiles place their edges"),
        Symbol("q_row", default="NH * D", doc="elements from one sequence's queries to the next"),
        Symbol("out_row", default="NH * D", doc="elements from one sequence's output to the next"),
        Symbol("k_row", default="D", doc="elements from one K slot to the next"),
        Symbol("k_head", default="capacity * k_row", doc="elements from one KV head's keys to the next"),
        Symbol("k_batch", default="NKV * k_head", doc="elements from one sequence's keys to the next"),
        Symbol("v_row", default="D", doc="elements from one V slot to the next"),
        Symbol("v_head", default="capacity * v_row", doc="elements from one KV head's values to the next"),
        Symbol("v_batch", default="NKV * v_head", doc="elements from one sequence's values to the next"),
    ),
    buffers=(
        Buffer("q", "bf16", ("B", "NH * D"), strides=("q_row", 1)),
        Buffer("k", "bf16", CACHE, strides=("k_batch", "k_head", "k_row", 1), live=live_slots),
        Buffer("v", "bf16", CACHE, strides=("v_batch", "v_head", "v_row", 1), live=live_slots),
        Buffer("lengths", "i32", ("B",), align=4),
        Buffer("out", "bf16", ("B", "NH * D"), "out", strides=("out_row", 1)),
        Buffer("workspace", "u8", ("workspace_bytes",), "workspace", align=256),
    ),
    entry=Launcher(
        "decode_pipeline_launch",
        struct="decode_pipeline_args",
        args={
            "q": "q", "k": "k", "v": "v", "out": "out", "lengths": "lengths",
            "workspace": "workspace", "workspace_bytes": "bytes(workspace)",
            "batch": "B", "num_heads": "NH", "num_kv_heads": "NKV", "head_dim": "D",
            "capacity": "capacity", "window": "window", "q_stride_b": "q_row", "out_stride_b": "out_row",
            "k_stride_b": "k_batch", "k_stride_h": "k_head", "k_stride_s": "k_row",
            "v_stride_b": "v_batch", "v_stride_h": "v_head", "v_stride_s": "v_row", "scale": "scale",
        },
    ),
    plan=Plan("decode_pipeline_plan", "decode_pipeline_plan_result", ("workspace_bytes",)),
    reference=pipeline_reference,
    error_model=pipeline_error_model,
    profiles=ATTENTION_PROFILES,
    overread="masked",
    axes={"out": ("batch", "column")},
    refusals=(
        Refusal("heads-not-a-multiple", {"NKV": "NH + 1"}),
        Refusal("window-above-capacity", {"window": "capacity + 1"}),
        Refusal("workspace-too-small", shrink={"workspace": 1}),
        *(Refusal(f"null-{name}", null=(name,)) for name in ("q", "k", "v", "out", "lengths", "workspace")),
    ),
)  # fmt: skip
