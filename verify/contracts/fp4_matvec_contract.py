"""Contract of cuda/fp4_matvec.cu: FP4 weights with group scales times up to eight bf16 vectors."""

from __future__ import annotations

from functools import partial

from verify.contract.entries import Launcher, Refusal
from verify.contract.model import Buffer, Contract, Plan
from verify.contract.symbols import DtypeChoice, Symbol
from verify.contracts.matvec.hypotheses import FP4_HYPOTHESES
from verify.contracts.matvec.profiles import FP4_PROFILES
from verify.contracts.matvec.reference import fp4_effects, fp4_error_model, fp4_exact, fp4_reference
from verify.contracts.matvec.torch_parity import fp4_torch

_refused = partial(Refusal, error="cudaErrorInvalidValue")
_grid_refused = partial(Refusal, error="cudaErrorInvalidConfiguration")

CONTRACT = Contract(
    name="fp4_matvec",
    source="fp4_matvec.cu",
    symbols=(
        Symbol("N", minimum=1, doc="rows of the weights"),
        Symbol("K", doc="weights in a row; a multiple of group"),
        Symbol("B", minimum=1, doc="vectors, 1 to 8"),
        Symbol("group", choices=(16, 32), doc="weights that share a scale"),
        Symbol("scale_format", choices=(0, 1, 2), doc="0 E4M3, 1 E8M0, 2 bf16"),
        Symbol("output", default=0, choices=(0, 1), doc="type of y: 0 bf16, 1 fp32"),
        Symbol("pinned_rows", default=0, minimum=0, doc="rows a block, 0 to let the launcher choose"),
        Symbol("constant_weights", default=0, choices=(0, 1), doc="1: may be copied early"),
        Symbol("w_pitch", default="round_up(K // 2, 16)", doc="bytes from one row of weights to the next"),
        Symbol("s_pitch", default="round_up(K // group, 32 // group)", doc="scales from one row to the next"),
        Symbol("x_pitch", default="round_up(K, 8)", doc="elements from one vector to the next"),
        Symbol("y_pitch", default="N", doc="elements from one result to the next"),
    ),
    buffers=(
        Buffer("weights", "e2m1x2", ("N", "K // 2"), strides=("w_pitch", 1), doc="low nibble first"),
        Buffer(
            "scales",
            DtypeChoice("scale_format", ("e4m3", "e8m0", "bf16")),
            ("N", "K // group"),
            strides=("s_pitch", 1),
            align=4,
            doc="negative scales are allowed, a NaN propagates to its row of y, E8M0 code 0 is 2^-127",
        ),
        Buffer("tensor_scale", "f32", (1,), align=4),
        Buffer("x", "bf16", ("B", "K"), strides=("x_pitch", 1)),
        Buffer(
            "y", DtypeChoice("output", ("bf16", "f32")), ("B", "N"), "out", strides=("y_pitch", 1), align=4
        ),
    ),
    entry=Launcher(
        "fp4_matvec_launch",
        struct="fp4_matvec_args",
        args={
            "weights": "weights", "scales": "scales", "tensor_scale": "tensor_scale", "x": "x", "y": "y",
            "n": "N", "k": "K", "weight_pitch": "w_pitch", "scale_pitch": "s_pitch", "x_pitch": "x_pitch",
            "y_pitch": "y_pitch", "b": "B", "group": "group", "scale_format": "scale_format",
            "output_type": "output", "rows_per_block": "pinned_rows", "constant_weights": "constant_weights",
        },
    ),
    plan=Plan(
        "fp4_matvec_plan",
        "fp4_matvec_plan_result",
        (
            "warp_step", "step", "pipeline_depth", "warps_per_block", "rows_per_block", "passes",
            "iterations", "grid",
        ),
        promised={
            "step": "warp_step * warps_per_block", "iterations": "ceil_div(K, step)",
            "grid": "ceil_div(N, rows_per_block)", "passes": "1 + (group == 16 and B > 4)",
        },
    ),
    reference=fp4_reference,
    error_model=fp4_error_model,
    effects=fp4_effects,
    hypotheses=FP4_HYPOTHESES,
    exact_reference=fp4_exact,
    profiles=FP4_PROFILES,
    exact=tuple((p, "y") for p in ("codes", "position", "first-hot", "last-hot", "scale-codes")),
    axes={"y": ("vector", "row")},
    batch="B",
    pinned={"pinned_rows": "rows_per_block*(B > 1)"},
    row_reads={"weights": 1, "scales": 1, "x": "ceil_div(N, rows_per_block)"},
    parity={"torch": fp4_torch},
    instantiations={
        f"product<{name}, {group}, {'true' if passes == 2 else 'false'}, {rows}>": (
            f"scale_format == {number} and group == {group} and passes == {passes} "
            f"and rows_per_block == {rows} and warp_step == 128"
        )
        for number, name in enumerate(("E4M3", "E8M0", "BF16"))
        for group, passes in ((16, 1), (16, 2), (32, 1))
        for rows in (16, 32)
    }
    | {
        f"product_of_one<{name}, {group}>": (
            f"scale_format == {number} and group == {group} and warp_step == 256"
        )
        for number, name in enumerate(("E4M3", "E8M0", "BF16"))
        for group in (16, 32)
    },
    refusals=(
        _refused("null-arguments", null=("fp4_matvec_args",)),
        _refused("no-rows", {"N": 0}),
        _refused("no-vectors", {"B": 0}),
        _refused("nine-vectors", {"B": 9}),
        *(_refused(f"groups-of-{g}", {"group": g, "K": 64}) for g in (8, 64)),
        _refused("depth-no-multiple-of-group", {"K": "group + 8"}),
        _refused("no-depth", {"K": 0}),
        _refused("depth-above-2-to-30", {"K": "2**30 + group"}),
        *(_refused(f"scale-format-{f}", {"scale_format": f}) for f in (-1, 3)),
        *(_refused(f"output-type-{o}", {"output": o}) for o in (-1, 2)),
        *(_refused(f"{r}-rows-a-block", {"pinned_rows": r}) for r in (-32, 24, 80, 2**30 + 32)),
        _refused("64-rows-for-two-vectors", {"B": 2, "pinned_rows": 64}),
        *(_refused(f"constant-weights-{c}", {"constant_weights": c}) for c in (-1, 2)),
        _refused("weight-rows-overlap", {"K": "step", "w_pitch": "step // 2 - 16"}),
        _refused("weight-pitch-misaligned", {"w_pitch": "round_up(K // 2, 16) + 8"}),
        _refused("scale-rows-overlap", {"K": "step", "s_pitch": "step // group - 2"}),
        _refused("scale-pitch-odd", {"K": "2 * group", "s_pitch": 3}),
        _refused("vectors-overlap", {"x_pitch": "K - 8"}),
        _refused("vector-pitch-misaligned", {"x_pitch": "round_up(K, 8) + 4"}),
        _refused("results-overlap", {"N": 2, "y_pitch": 1}),
        # A grid that would be small if truncated to 32 bits.
        _grid_refused("grid-too-large", {"N": 2**37 + 32, "pinned_rows": 32}),
        _grid_refused("grid-too-large-for-one-vector", {"N": 2**38 + 64, "pinned_rows": 64}),
        _refused("weights-beyond-memory", {"N": 2, "w_pitch": 2**62}),
        _refused("scales-beyond-memory", {"N": 2, "s_pitch": 2**61}),
        _refused("vectors-beyond-memory", {"B": 2, "x_pitch": 2**61}),
        _refused("results-beyond-memory", {"B": 2, "y_pitch": 2**60}),
        *(_refused(f"null-{x}", null=(x,)) for x in ("weights", "scales", "tensor_scale", "x", "y")),
        *(
            _refused(f"misaligned-{x}-by-{by}", misalign={x: by})
            for x, most in (("weights", 8), ("x", 8), ("scales", 1), ("tensor_scale", 2), ("y", 2))
            for by in (1, 2, 4, 8) if by <= most
        ),
        _refused("misaligned-bf16-scales-by-2", {"scale_format": 2}, misalign={"scales": 2}),
        _refused(
            "misaligned-bf16-scales-by-1",
            {"scale_format": 2, "group": 32, "K": 32},
            misalign={"scales": 1},
        ),
        _refused("misaligned-bf16-y", {"output": 0}, misalign={"y": 1}),
    ),
)  # fmt: skip
