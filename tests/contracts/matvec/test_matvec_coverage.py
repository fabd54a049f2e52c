"""The matvec fixtures hold every code in every place, every scale code, and every variant of the kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.contracts.matvec.matvec_plan import KERNELS, WARP_STEP, cases, contract, resolved
from verify.contract.discovery import source_file
from verify.contract.expression import evaluate
from verify.contract.formats import decode
from verify.fixture.resolve import ResolvedFixture


def test_every_code_stands_in_every_nibble_place() -> None:
    """Fault: profiles that no longer bring each of the 16 codes into each of the 8 places of a word."""
    seen = set()
    for case in (c for c in cases("fp4_matvec") if c.profile == "codes"):
        packed = case.arrays["weights"]
        codes = np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)
        places = np.broadcast_to(np.arange(codes.shape[1]) % 8, codes.shape)
        seen |= set(zip(codes.ravel().tolist(), places.ravel().tolist(), strict=True))
    assert seen == {(code, place) for code in range(16) for place in range(8)}


def test_every_scale_code_occurs() -> None:
    """Fault: a scale code that no fixture holds: all 256 of E4M3 and E8M0, NaN among them."""
    seen: dict[int, set[int]] = {0: set(), 1: set()}
    for case in (c for c in cases("fp4_matvec") if c["scale_format"] in seen):
        if case.profile in ("scale-codes", "nan-scales"):
            seen[case["scale_format"]] |= set(case.arrays["scales"].ravel().tolist())
    assert seen == {0: set(range(256)), 1: set(range(256))}


def test_every_scale_code_decides_a_result() -> None:
    """Fault: scale codes occur only with weights of zero, where their decoding has no effect."""
    decisive: dict[int, set[int]] = {0: set(), 1: set()}
    for case in (
        c for c in cases("fp4_matvec") if c.profile == "scale-codes" and c["scale_format"] in decisive
    ):
        weights = case.f64("weights").reshape(case["N"], -1, case["group"])
        used = (weights != 0).any(-1)
        decisive[case["scale_format"]] |= set(case.arrays["scales"][used].tolist())
    for number, dtype in ((0, "e4m3"), (1, "e8m0")):
        codes = np.arange(256, dtype=np.uint8)
        assert set(codes[np.isfinite(decode(dtype, codes))].tolist()) <= decisive[number]


def test_every_e4m3_weight_stands_alone_in_every_byte() -> None:
    """Fault: an FP8 code that is never the only one behind a result, in one of the four bytes of a word."""
    seen = set()
    for case in (c for c in cases("fp8_matvec") if c.profile in ("first-hot", "last-hot")):
        hot = np.argmax(case.f64("x") != 0, axis=1)
        for place in hot:
            seen |= {(int(code), int(place) % 4) for code in case.arrays["weights"][:, place]}
    finite = [code for code in range(256) if code & 0x7F != 0x7F]
    assert seen == {(code, place) for code in finite for place in range(4)}


def test_every_variant_runs() -> None:
    """Fault: a template instantiation that no fixture reaches."""
    four = {
        (r.symbols["scale_format"], r.symbols["group"], r.plan["passes"], r.plan["rows_per_block"])
        for r in resolved("fp4_matvec")
        if r.plan["warp_step"] == WARP_STEP["fp4_matvec"]
    }
    assert four == {
        (number, group, passes, rows)
        for number in (0, 1, 2)
        for group, passes in ((16, 1), (16, 2), (32, 1))
        for rows in (16, 32)
    }
    alone = [r for r in resolved("fp4_matvec") if r.plan["warp_step"] != WARP_STEP["fp4_matvec"]]
    kinds = {(r.symbols["scale_format"], r.symbols["group"]) for r in alone}
    assert kinds == {(number, group) for number in (0, 1, 2) for group in (16, 32)}
    assert {r.plan["rows_per_block"] for r in resolved("fp8_matvec")} == {16, 32}


COMMON = {
    "batch above 1": "B > 1",
    "rows of several blocks, the last in part": "N > rows_per_block and N % rows_per_block != 0",
    "ragged depth": "K > step and K % warp_step != 0",
    "wide pitches": "x_pitch > K + 8 and y_pitch > N and B > 1",
    "bf16 result": "output == 0",
    "fp32 result": "output == 1",
}
VALUES = {
    "fp4_matvec": {**COMMON, "wide rows": "w_pitch > K // 2 + 16 and s_pitch > K // group + 2"},
    "fp8_matvec": {**COMMON, "wide rows": "w_pitch > K + 16"},
}
"""What every instantiation must meet, those of the kernel for one vector without what needs several."""
OF_SEVERAL = ("batch above 1", "wide pitches")


@pytest.mark.parametrize(
    ("kernel", "value"), [(kernel, value) for kernel in KERNELS for value in VALUES[kernel]]
)
def test_every_instantiation_meets_every_value(kernel: str, value: str) -> None:
    """Fault: a variant whose pitches, tails or type of result no fixture tries."""
    for name, condition in contract(kernel).instantiations.items():
        if name.startswith("product_of_one<") and value in OF_SEVERAL:
            continue
        own = [{**r.symbols, **r.plan} for r in resolved(kernel)]
        own = [values for values in own if evaluate(condition, values)]
        assert any(evaluate(VALUES[kernel][value], values) for values in own), name


def test_the_instantiations_are_those_of_the_source() -> None:
    """Fault: an instantiation that the contract does not name, so that it may never run."""
    assert len(contract("fp4_matvec").instantiations) == 3 * 3 * 2 + 3 * 2
    for kernel in KERNELS:
        text = source_file(contract(kernel)).read_text(encoding="utf-8")
        rows = {int(n) for n in re.findall(r"(?:product|kernel_for)<(?:\w+, )*(16|32)>", text)}
        assert rows == {16, 32}
        assert {
            int(name.rstrip(">").split()[-1].split("<")[-1]) for name in contract(kernel).instantiations
        } == rows


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_pitch_passes_32_bits(kernel: str) -> None:
    """Fault: a row offset that no fixture brings past 2^31 elements, in any variant of rows."""
    for rows in (16, 32):
        own = [r for r in resolved(kernel) if r.plan["rows_per_block"] == rows]
        for pitch, count in (("w_pitch", "N"), ("s_pitch", "N"), ("x_pitch", "B"), ("y_pitch", "B")):
            if contract(kernel).symbol(pitch) is not None:
                assert max((r.symbols[count] - 1) * r.symbols[pitch] for r in own) > 2**31


def test_a_depth_passes_16_bits() -> None:
    """Fault: fixtures whose depth a 16-bit index can count."""
    for kernel in KERNELS:
        assert max(r.symbols["K"] for r in resolved(kernel)) > 65_536


def test_whole_steps_and_ragged_ones_occur() -> None:
    """Fault: fixtures that leave out a path of the copies: all rows and lanes at once, or one by one."""
    for kernel in KERNELS:
        for rows in (16, 32):
            own = [r for r in resolved(kernel) if r.plan["rows_per_block"] == rows]
            whole = [r for r in own if r.symbols["N"] >= rows and r.symbols["K"] >= 2 * r.plan["step"]]
            assert any(_scale_bytes(r) % 16 == 0 for r in whole)
            assert any(r.symbols["N"] % rows and r.symbols["K"] % r.plan["warp_step"] for r in own)
    assert any(_scale_bytes(r) % 4 and r.symbols["N"] >= 16 for r in resolved("fp4_matvec"))


def _scale_bytes(fixture: ResolvedFixture) -> int:
    """From one row of scales to the next; 0 without such rows."""
    size = 2 if fixture.symbols.get("scale_format") == 2 else 1
    return fixture.symbols.get("s_pitch", 0) * size


def test_both_result_types_and_padded_pitches_occur() -> None:
    """Fault: fixtures that all store one type, or all lie without padding."""
    for kernel in KERNELS:
        assert {r.symbols["output"] for r in resolved(kernel)} == {0, 1}
        assert any(r.symbols["y_pitch"] > r.symbols["N"] for r in resolved(kernel))
