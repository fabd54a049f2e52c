"""Contract of cuda/fp8_matvec.cu: E4M3 weights with a scale for each row times up to eight bf16 vectors."""

from __future__ import annotations

from verify.case.matvec_profiles import FP8_PROFILES
from verify.contract import Buffer, Contract, DtypeChoice, Launcher, Plan, Refusal, Symbol
from verify.oracle.matvec import fp8_effects, fp8_error_model, fp8_exact, fp8_reference
from verify.oracle.matvec_torch import fp8_torch

CONTRACT = Contract(
    name="fp8_matvec",
    source="fp8_matvec.cu",
    symbols=(
        Symbol("N", minimum=1, doc="rows of the weights"),
        Symbol("K", doc="weights in a row"),
        Symbol("B", minimum=1, doc="vectors, 1 to 8"),
        Symbol("output", default=1, choices=(0, 1), doc="type of y: 0 bf16, 1 fp32"),
        Symbol("pinned_rows", default=0, minimum=0, doc="rows a block, 0 to let the launcher choose"),
        Symbol("w_pitch", default="round_up(K, 16)", doc="bytes from one row of weights to the next"),
        Symbol("x_pitch", default="round_up(K, 8)", doc="elements from one vector to the next"),
        Symbol("y_pitch", default="N", doc="elements from one result to the next"),
    ),
    buffers=(
        Buffer("weights", "e4m3", ("N", "K"), strides=("w_pitch", 1), doc="a NaN reaches its row of y"),
        Buffer("scales", "f32", ("N",), align=4, doc="a negative scale is used with its sign"),
        Buffer("x", "bf16", ("B", "K"), strides=("x_pitch", 1)),
        Buffer(
            "y", DtypeChoice("output", ("bf16", "f32")), ("B", "N"), "out", strides=("y_pitch", 1), align=4
        ),
    ),
    entry=Launcher(
        "fp8_matvec_launch",
        struct="fp8_matvec_args",
        args={
            "weights": "weights", "scales": "scales", "x": "x", "y": "y", "n": "N", "k": "K",
            "weight_pitch": "w_pitch", "x_pitch": "x_pitch", "y_pitch": "y_pitch", "b": "B",
            "output_type": "output", "rows_per_block": "pinned_rows",
        },
    ),
    plan=Plan(
        "fp8_matvec_plan",
        "fp8_matvec_plan_result",
        ("warp_step", "step", "pipeline_depth", "warps_per_block", "rows_per_block", "iterations"),
    ),
    reference=fp8_reference,
    error_model=fp8_error_model,
    effects=fp8_effects,
    exact_reference=fp8_exact,
    profiles=FP8_PROFILES,
    exact=tuple((p, "y") for p in ("position", "first-hot", "last-hot")),
    axes={"y": ("vector", "row")},
    batch="B",
    row_reads={"weights": 1, "x": "ceil_div(N, rows_per_block)"},
    parity={"torch": fp8_torch},
    refusals=(
        Refusal("no-rows", {"N": 0}),
        Refusal("no-vectors", {"B": 0}),
        Refusal("nine-vectors", {"B": 9}),
        Refusal("no-depth", {"K": 0}),
        Refusal("output-type-unknown", {"output": 2}),
        Refusal("rows-a-block-unsupported", {"pinned_rows": 24}),
        Refusal("weight-rows-overlap", {"w_pitch": "round_up(K, 16) - 16"}),
        Refusal("weight-pitch-misaligned", {"w_pitch": "round_up(K, 16) + 8"}),
        Refusal("vectors-overlap", {"x_pitch": "round_up(K, 8) - 8"}),
        Refusal("vector-pitch-misaligned", {"x_pitch": "round_up(K, 8) + 4"}),
        Refusal("results-overlap", {"y_pitch": "N - 1"}),
        Refusal("grid-too-large", {"N": 2**36, "y_pitch": 2**36}),
        Refusal("bytes-over-size_t", {"N": 2, "y_pitch": 2, "w_pitch": 2**62}),
        *(Refusal(f"null-{name}", null=(name,)) for name in ("weights", "scales", "x", "y")),
        *(Refusal(f"misaligned-{name}", misalign={name: 8}) for name in ("weights", "x")),
        *(Refusal(f"misaligned-{name}", misalign={name: 1}) for name in ("scales", "y")),
    ),
)  # fmt: skip
