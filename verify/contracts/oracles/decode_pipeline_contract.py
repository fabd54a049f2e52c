"""Contract of cuda/decode_pipeline.cu: the library pipeline that flash decoding replaced, as an oracle.

It reads the whole allocation and masks afterwards, so it is valid only if dead slots are finite.
"""

from __future__ import annotations

from verify.contract.entries import Launcher, Refusal
from verify.contract.model import Buffer, Contract, Plan
from verify.contract.symbols import Symbol
from verify.contracts.attention.operands import BUFFERS, SYMBOLS
from verify.contracts.attention.pipeline import pipeline_error_model, pipeline_reference
from verify.contracts.attention.profiles import ATTENTION_PROFILES

CONTRACT = Contract(
    name="decode_pipeline",
    source="decode_pipeline.cu",
    symbols=(
        *SYMBOLS,
        Symbol("tile", default=32, minimum=1, doc="used by the data profiles to place edges"),
        Symbol("num_splits", default=1, minimum=1, doc="used by the data profiles to place edges"),
    ),
    buffers=(*BUFFERS, Buffer("workspace", "u8", ("workspace_bytes",), "workspace", align=256)),
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
        Refusal("more-kv-heads-than-heads", {"NKV": "NH + 1"}),
        Refusal("heads-with-a-remainder", {"NH": 3, "NKV": 2}),
        Refusal("window-above-capacity", {"window": "capacity + 1"}),
        Refusal("workspace-too-small", shrink={"workspace": 1}),
        *(Refusal(f"null-{name}", null=(name,)) for name in ("q", "k", "v", "out", "lengths", "workspace")),
    ),
)  # fmt: skip
