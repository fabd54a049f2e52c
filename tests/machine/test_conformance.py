"""Every instruction form against the recorded answers of the hardware, or against its definition.

An instruction that computes something else than the GPU makes every verdict of the CPU device worthless.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.machine.conformance.api import RUNS, Run
from tests.machine.conformance.catalogue import FAMILIES
from tests.machine.conformance.compare import Answers, difference, load_answers, mma_difference
from tests.machine.conformance.convert_forms import missing_on_hardware
from tests.machine.conformance.forms import Form, width_of
from tests.machine.conformance.plan import MATRICES as ALL_MATRICES
from tests.machine.conformance.plan import Item, all_keys, write_entries, write_plan
from tests.machine.conformance.record import digest
from tests.machine.conformance.video_forms import EXPANDED_OTHERWISE
from verify.check.program import run_program
from verify.device.program import ProgramOptions, compile_program
from verify.toolchain.machine_build import machine_program

MATRICES = [op for op in ALL_MATRICES if op.name in load_answers().places]
RUNNER = Path(__file__).parent / "conformance" / "run_cpu.cpp"


def run(folder: Path) -> bytes:
    done = subprocess.run(
        [str(machine_program(RUNNER)), str(folder)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return (folder / "answers.bin").read_bytes()


@pytest.fixture(scope="module")
def hardware() -> Answers:
    return load_answers()


@pytest.fixture(scope="module")
def machine(hardware: Answers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The CPU device's answer to every form, on the very kernels and operands that were recorded."""
    folder = tmp_path_factory.mktemp("conformance")
    items = write_plan(folder, hardware.places)
    assert digest(folder) == hardware.about["digest"], "forms changed: record again (conformance/record.py)"
    data = run(folder)
    return {item.key: data[item.out_offset : item.out_offset + item.out_bytes] for item in items}


def test_forms_without_a_recorded_answer_run(hardware: Answers, tmp_path: Path) -> None:
    """A form that the device refuses. What it answers is compared once record.py has asked the hardware."""
    missing = set(all_keys()) - hardware.places.keys()
    if not missing:
        return
    families = {name: sum(form.key in missing for form in forms()) for name, forms in FAMILIES.items()}
    families["matrix"] = sum(op.name in missing for op in ALL_MATRICES)
    counted = ", ".join(f"{name} {count}" for name, count in families.items() if count)
    warnings.warn(f"not recorded yet: {len(missing)} forms ({counted})", stacklevel=1)
    write_plan(tmp_path, missing)
    run(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_family_agrees_with_the_hardware(family: str, hardware: Answers, machine: dict[str, bytes]) -> None:
    """Bit for bit, or within the form's measured bound for the approximate instructions."""
    wrong = []
    for form in FAMILIES[family]():
        if form.key not in hardware.places or EXPANDED_OTHERWISE.fullmatch(form.key):
            continue  # the models hold the latter against what PTX defines
        apart, where = difference(form, hardware.item(form.key), machine[form.key])
        if apart > 1:
            wrong.append(f"{form.key}: {where}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("op", MATRICES, ids=lambda op: op.name)
def test_matrix_product_agrees_with_the_hardware(op, hardware: Answers, machine: dict[str, bytes]) -> None:  # type: ignore[no-untyped-def]
    """Integers, f16 and f64 accumulators bit for bit; f32 within what the order of summation can move."""
    assert mma_difference(op, hardware.item(op.name), machine[op.name]) <= 1


# What the recording of the bulk copies found, strictly: who mends one takes it off the list.
DIFFERING = {
    "tensor_encode": "a size of 2^32, a box of 2 MB, interleave of 32 bytes without its swizzle",
    "tensor_loads-1": "the hardware calls a load an illegal instruction, and all after it fail",
    "tensor_loads-2": "the hardware calls a load an illegal instruction, and all after it fail",
    "bulk_reductions-1": "the reductions between shared memory have other results",
}


def _runs() -> Iterator[object]:
    for run in RUNS:
        reason = DIFFERING.get(run.key)
        marks = (
            [] if reason is None else [pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)]
        )
        yield pytest.param(run, id=run.key, marks=marks)


@pytest.mark.parametrize("program", _runs())
def test_runtime_answers_as_on_the_hardware(program: Run, hardware: Answers, tmp_path: Path) -> None:
    """A limit, error code, attribute, effect of a graph or printed character that differs, line by line."""
    binary = compile_program(program.source, "sm_90", ["-w"])
    answer = tmp_path / "answer.txt"
    with answer.open("wb") as out, (tmp_path / "report.txt").open("wb") as report:
        options = ProgramOptions((), report_api_errors=False)
        command = [str(binary), *program.arguments]
        done = run_program(command, options, stdout=out.fileno(), stderr=report.fileno())
    assert done.program_code == 0, (tmp_path / "report.txt").read_text()
    if program.key not in hardware.api:
        pytest.skip(f"runs, and is not recorded yet: {program.key}")
    assert answer.read_text().splitlines() == hardware.api[program.key].splitlines()


@pytest.mark.gpu
def test_the_recorded_answers_are_those_of_this_gpu(hardware: Answers, tmp_path: Path) -> None:
    """Answers recorded with an operand, a compiler or a card that the file does not tell."""
    command = [sys.executable, str(Path(__file__).parent / "conformance" / "record.py"), "--out"]
    done = subprocess.run(
        [*command, str(tmp_path / "again.xz")], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    again = load_answers(tmp_path / "again.xz")
    assert again.places == hardware.places
    assert again.about["digest"] == hardware.about["digest"]
    assert again.data == hardware.data
    assert again.api == hardware.api


def test_a_wrong_bit_is_seen(hardware: Answers) -> None:
    """A comparison that lets everything pass: flips one bit of an exact and of an approximate answer."""
    for family, key in (("float", "add.rn.f32"), ("special", "rcp.approx.f32")):
        form = next(f for f in FAMILIES[family]() if f.key == key)
        answer = bytearray(hardware.item(key))
        words = np.frombuffer(bytes(answer), np.uint32)
        plain = int(np.flatnonzero((words > 0x3F000000) & (words < 0x41000000))[0])
        answer[4 * plain] ^= 0x04
        assert difference(form, hardware.item(key), bytes(answer))[0] > 1


# ---- what sm_90 lacks: against the definition -----------------------------------------------------

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
# Every bf16, and so every sign and exponent of f32.
BF16 = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32)


def e2m1_code(value: float, relu: bool) -> int:
    """Nearest of the sixteen values, ties to the even code, beyond 6 the largest; NaN gives +6."""
    if np.isnan(value):
        return 7
    sign = 8 if np.signbit(value) else 0
    if relu and (sign or value == 0):
        return 0
    size = abs(value)
    best = min(range(8), key=lambda code: (abs(E2M1[code] - size), code & 1)) if size < 6 else 7
    return sign | best


def e8m0_code(bits: int, up: bool, finite: bool) -> int:
    """The exponent of a float; rounded up when anything lies above the power of two."""
    size = bits & 0x7FFFFFFF
    if size > 0x7F800000:
        return 0xFF
    exponent, rest = size >> 23, size & 0x7FFFFF
    above = up and rest != 0 and not (exponent == 0 and rest <= 0x400000) and exponent != 0xFF
    code = exponent + above
    return 0xFE if code == 0xFF and finite else code


def missing(key: str, arrays: list[np.ndarray], folder: Path) -> np.ndarray:
    """Answers of the CPU device to one of the missing forms, on these operands."""
    form = next(f for f in missing_on_hardware() if f.key == key)
    sized = Form(**{**form.__dict__, "count": len(arrays[0]), "name": form.key})
    items: list[Item] = write_entries(folder, "sm_100a", [(sized, [a.tobytes() for a in arrays])])
    assert len(items) == 1
    return np.frombuffer(run(folder), {2: np.uint16, 4: np.uint32}[width_of(form.d)])


@pytest.mark.parametrize("relu", ["", ".relu"])
def test_e2m1_is_widened_as_defined(relu: str, tmp_path: Path) -> None:
    """Every byte: a sign lost, nibbles swapped, 0 and 0.5 confused."""
    codes = np.arange(256, dtype=np.uint16)
    got = missing(f"cvt.rn{relu}.f16x2.e2m1x2", [codes], tmp_path)
    halves = got.view(np.float16).reshape(-1, 2)
    for nibble in (0, 1):
        part = codes >> (4 * nibble) & 15
        want = np.array([E2M1[c & 7] * (-1 if c & 8 else 1) for c in part], np.float16)
        if relu:
            want = np.maximum(want, np.float16(0))
        np.testing.assert_array_equal(halves[:, nibble], want)
        if not relu:
            np.testing.assert_array_equal(np.signbit(halves[:, nibble]), (part & 8) != 0)


@pytest.mark.parametrize("relu", ["", ".relu"])
def test_e2m1_is_rounded_as_defined(relu: str, tmp_path: Path) -> None:
    """Every bf16 as f32, in either place: a tie to the odd code, a missing saturation, a wrong NaN."""
    other = np.roll(BF16, 1234)
    got = missing(f"cvt.rn.satfinite{relu}.e2m1x2.f32", [BF16, other], tmp_path)
    table = np.array([e2m1_code(float(v), bool(relu)) for v in BF16], np.uint16)
    np.testing.assert_array_equal(got, table << 4 | np.roll(table, 1234))


@pytest.mark.parametrize("rounding", ["rz", "rp"])
@pytest.mark.parametrize("finite", ["", ".satfinite"])
@pytest.mark.parametrize("source", ["f32", "bf16x2"])
def test_e8m0_is_rounded_as_defined(rounding: str, finite: str, source: str, tmp_path: Path) -> None:
    """Every bf16, and for f32 the neighbours that differ in the last bit."""
    bits = BF16.view(np.uint32)
    key = f"cvt.{rounding}{finite}.ue8m0x2.{source}"
    if source == "f32":
        low = bits | 1
        got = missing(key, [bits, low], tmp_path)
    else:
        low = np.roll(bits, 77)
        got = missing(key, [bits | low >> 16], tmp_path)
    code = [e8m0_code(int(b), rounding == "rp", bool(finite)) for b in bits]
    code_low = [e8m0_code(int(b), rounding == "rp", bool(finite)) for b in low]
    np.testing.assert_array_equal(got, np.array(code, np.uint16) << 8 | np.array(code_low, np.uint16))


def test_e8m0_is_widened_as_defined(tmp_path: Path) -> None:
    """Every pair of codes: 0xFF is NaN, 0 is 2^-127 (a subnormal, which a flush would lose)."""
    codes = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    got = missing("cvt.rn.bf16x2.ue8m0x2", [codes], tmp_path)
    value = [0x7FFF if c == 0xFF else 0x0040 if c == 0 else c << 7 for c in range(256)]
    table = np.array(value, np.uint32)
    np.testing.assert_array_equal(got, table[codes >> 8] << 16 | table[codes & 0xFF])
