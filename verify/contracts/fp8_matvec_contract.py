"""Contract of cuda/fp8_matvec.cu: E4M3 weights with a scale for each row times up to eight bf16 vectors."""

from __future__ import annotations

from functools import partial

from verify.contract.entries import Launcher, Refusal
from verify.contract.model import Buffer, Contract, Plan
from verify.contract.symbols import DtypeChoice, Symbol
from verify.contracts.matvec.hypotheses import FP8_HYPOTHESES
from verify.contracts.matvec.profiles import FP8_PROFILES
from verify.contracts.matvec.reference import fp8_effects, fp8_error_model, fp8_exact, fp8_reference
from verify.contracts.matvec.torch_parity import fp8_torch

_refused = partial(Refusal, error="cudaErrorInvalidValue")
_grid_refused = partial(Refusal, error="cudaErrorInvalidConfiguration")

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
        Buffer("weights", "e4m3", ("N", "K"), strides=("w_pitch", 1), doc="a NaN propagates to its row of y"),
        Buffer("scales", "f32", ("N",), align=4, doc="negative scales are allowed"),
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
        ("warp_step", "step", "pipeline_depth", "warps_per_block", "rows_per_block", "iterations", "grid"),
        promised={
            "step": "warp_step * warps_per_block", "iterations": "ceil_div(K, step)",
            "grid": "ceil_div(N, rows_per_block)",
        },
    ),
    reference=fp8_reference,
    error_model=fp8_error_model,
    effects=fp8_effects,
    hypotheses=FP8_HYPOTHESES,
    exact_reference=fp8_exact,
    profiles=FP8_PROFILES,
    exact=tuple((p, "y") for p in ("position", "first-hot", "last-hot")),
    axes={"y": ("vector", "row")},
    batch="B",
    row_reads={"weights": 1, "x": "ceil_div(N, rows_per_block)"},
    parity={"torch": fp8_torch},
    instantiations={f"product<{rows}>": f"rows_per_block == {rows}" for rows in (16, 32)},
    refusals=(
        _refused("null-arguments", null=("fp8_matvec_args",)),
        _refused("no-rows", {"N": 0}),
        _refused("no-vectors", {"B": 0}),
        _refused("nine-vectors", {"B": 9}),
        _refused("no-depth", {"K": 0}),
        _refused("depth-above-2-to-30", {"K": 2**30 + 1}),
        *(_refused(f"output-type-{o}", {"output": o}) for o in (-1, 2)),
        *(_refused(f"{r}-rows-a-block", {"pinned_rows": r}) for r in (-16, 24, 64)),
        _refused("weight-rows-overlap", {"w_pitch": "round_up(K, 16) - 16"}),
        _refused("weight-pitch-misaligned", {"w_pitch": "round_up(K, 16) + 8"}),
        _refused("vectors-overlap", {"x_pitch": "round_up(K, 8) - 8"}),
        _refused("vector-pitch-misaligned", {"x_pitch": "round_up(K, 8) + 4"}),
        _refused("results-overlap", {"N": 2, "y_pitch": 1}),
        # A grid that would be small if truncated to 32 bits.
        _grid_refused("grid-too-large", {"N": 2**37 + 32, "pinned_rows": 32}),
        _refused("weights-beyond-memory", {"N": 2, "w_pitch": 2**62}),
        _refused("vectors-beyond-memory", {"B": 2, "x_pitch": 2**61}),
        _refused("results-beyond-memory", {"B": 2, "y_pitch": 2**60}),
        *(_refused(f"null-{x}", null=(x,)) for x in ("weights", "scales", "x", "y")),
        *(
            _refused(f"misaligned-{x}-by-{by}", misalign={x: by})
            for x, most in (("weights", 8), ("x", 8), ("scales", 2), ("y", 2))
            for by in (1, 2, 4, 8) if by <= most
        ),
        _refused("misaligned-bf16-y", {"output": 0}, misalign={"y": 1}),
    ),
)  # fmt: skip
