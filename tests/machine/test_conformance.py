"""Every instruction form against the recorded answers of the hardware, or against its definition.

An instruction that computes something else than the GPU makes every verdict of the CPU device worthless.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.machine.conformance.answers import (
    RUNTIME,
    Answers,
    Recorded,
    read_answers,
    read_runtime,
    record_command,
    write_answers,
)
from tests.machine.conformance.api import RUNS, Run
from tests.machine.conformance.catalogue import FAMILIES
from tests.machine.conformance.compare import difference, mma_difference
from tests.machine.conformance.convert_forms import missing_on_hardware
from tests.machine.conformance.forms import Form, width_of
from tests.machine.conformance.plan import MATRICES, MATRIX, PLANNED, Item, write_entries, write_plan
from tests.machine.conformance.video_forms import EXPANDED_OTHERWISE
from tests.machine.conformance.warp_forms import Mma
from tests.machine.conformance.wmma_forms import Wmma
from verify.check.program import run_program
from verify.device.program import ProgramOptions, compile_program
from verify.toolchain.machine_build import machine_program

RUNNER = Path(__file__).parent / "conformance" / "run_cpu.cpp"


def run(folder: Path) -> bytes:
    done = subprocess.run(
        [str(machine_program(RUNNER)), str(folder)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return (folder / "answers.bin").read_bytes()


@cache
def hardware(family: str) -> Answers:
    return read_answers(family)


@cache
def machine(family: str) -> dict[str, Recorded]:
    """The CPU device's answers to a family. What it refuses fails this family alone."""
    with tempfile.TemporaryDirectory() as folder:
        items = write_plan(Path(folder), [family])
        data = run(Path(folder))
    return {
        item.key: Recorded(item.question, data[item.out_offset : item.out_offset + item.out_bytes])
        for item in items
    }


def comparable(family: str, here: dict[str, Recorded], there: Answers) -> set[str]:
    """The forms that were asked as they are now. Warns of those that are not recorded yet; they have run."""
    missing = here.keys() - there.forms.keys()
    if missing:
        some = ", ".join(sorted(missing)[:4])
        warnings.warn(
            f"not recorded yet: {len(missing)} forms of {family} ({some}): {record_command(family)}",
            stacklevel=2,
        )
    both = here.keys() & there.forms.keys()
    changed = sorted(key for key in both if here[key].question != there.forms[key].question)
    assert not changed, f"other kernels or operands than recorded: {changed}: {record_command(family)}"
    return both


@pytest.mark.parametrize("family", FAMILIES)
def test_family_agrees_with_the_hardware(family: str) -> None:
    """Fault: an answer differs in a bit, or exceeds the measured bound of an approximate instruction."""
    there, here = hardware(family), machine(family)
    compared = comparable(family, here, there)
    wrong = []
    for form in FAMILIES[family]():
        if form.key not in compared or EXPANDED_OTHERWISE.fullmatch(form.key):
            continue  # the models hold the latter against what PTX defines
        apart, where = difference(form, there.forms[form.key].answer, here[form.key].answer)
        if apart > 1:
            wrong.append(f"{form.key}: {where}")
    assert not wrong, "\n".join(wrong)


def test_matrix_shapes_are_those_recorded() -> None:
    """Fault: a shape whose operands have changed, which the test below would compare with answers
    to others."""
    comparable(MATRIX, machine(MATRIX), hardware(MATRIX))


@pytest.mark.parametrize(
    "op", [op for op in MATRICES if op.name in hardware(MATRIX).forms], ids=lambda op: op.name
)
def test_matrix_product_agrees_with_the_hardware(op: Mma | Wmma) -> None:
    """Fault: an integer, f16 or f64 accumulator differs in a bit; f32 by more than the order of summation
    can."""
    assert mma_difference(op, hardware(MATRIX).forms[op.name].answer, machine(MATRIX)[op.name].answer) <= 1


def test_a_form_without_a_recording_does_not_fail() -> None:
    """Fault: a new form fails without a GPU, or its message does not say how to record it."""
    here, there = machine("carry"), hardware("carry")
    key = next(iter(here))
    without = Answers(there.about, {k: v for k, v in there.forms.items() if k != key})
    with pytest.warns(UserWarning, match=r"1 forms of carry .*: python3 .*record.py --family carry"):
        assert comparable("carry", here, without) == here.keys() - {key}


def test_a_form_that_asks_something_else_fails() -> None:
    """The twin: operands were changed, and the old answers are compared with answers to the new ones."""
    here, there = machine("carry"), hardware("carry")
    key = next(iter(here))
    other = {**here, key: Recorded("another", here[key].answer)}
    with pytest.raises(AssertionError, match=r"record.py --family carry"):
        comparable("carry", other, there)


def test_every_recording_is_of_a_known_form() -> None:
    """Fault: a form is renamed, and its recorded answer is no longer compared with anything."""
    for family in PLANNED:
        assert not hardware(family).forms.keys() - machine(family).keys()


def test_recorded_answers_round_trip(tmp_path: Path) -> None:
    """Fault: a byte moves from one form to the next, or a file belongs to another recording."""
    answers = Answers({"device": "D"}, {"a": Recorded("q", b"123"), "b": Recorded("r", b"4567")})
    write_answers("some", answers, tmp_path)
    assert read_answers("some", tmp_path) == answers
    write_answers("other", Answers({}, {"a": Recorded("q", b"12"), "b": Recorded("r", b"34567")}), tmp_path)
    (tmp_path / "other.xz").replace(tmp_path / "some.xz")
    assert read_answers("none", tmp_path) == Answers()
    write_answers("some", answers, tmp_path)
    (tmp_path / "some.txt").write_text((tmp_path / "some.txt").read_text().replace("\t3\t", "\t2\t"))
    with pytest.raises(ValueError, match="the answer of a is not the one that was recorded"):
        read_answers("some", tmp_path)


# What the recording of the bulk copies found, strictly: who mends one takes it off the list.
DIFFERING = {
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


@pytest.mark.parametrize("program", list(_runs()))
def test_runtime_answers_as_on_the_hardware(program: Run, tmp_path: Path) -> None:
    """Fault: a limit, error code, attribute, effect of a graph or printed character that differs, line by
    line."""
    binary = compile_program(program.source, "sm_90", ["-w"])
    answer = tmp_path / "answer.txt"
    with answer.open("wb") as out, (tmp_path / "report.txt").open("wb") as report:
        options = ProgramOptions((), report_api_errors=False)
        command = [str(binary), *program.arguments]
        done = run_program(command, options, stdout=out.fileno(), stderr=report.fileno())
    assert done.program_code == 0, (tmp_path / "report.txt").read_text()
    recorded = read_runtime()
    if program.key not in recorded:
        pytest.skip(f"runs, and is not recorded yet: {record_command(RUNTIME)}")
    assert answer.read_text().splitlines() == recorded[program.key].splitlines()


@pytest.mark.gpu
def test_the_recorded_answers_are_those_of_this_gpu(tmp_path: Path) -> None:
    """Fault: answers recorded with an operand, a compiler or a card that the files do not name."""
    command = [sys.executable, str(Path(__file__).parent / "conformance" / "record.py"), "--out"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    for family in PLANNED:
        assert read_answers(family, tmp_path).forms == hardware(family).forms
    assert read_runtime(tmp_path) == read_runtime()


def test_a_wrong_bit_is_seen() -> None:
    """Fault: a comparison that passes everything; one bit of an exact and of an approximate answer is
    flipped."""
    for family, key in (("float", "add.rn.f32"), ("special", "rcp.approx.f32")):
        form = next(f for f in FAMILIES[family]() if f.key == key)
        right = hardware(family).forms[key].answer
        answer = bytearray(right)
        words = np.frombuffer(right, np.uint32)
        plain = int(np.flatnonzero((words > 0x3F000000) & (words < 0x41000000))[0])
        answer[4 * plain] ^= 0x04
        assert difference(form, right, bytes(answer))[0] > 1


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
    """Fault: for some byte a sign is lost, nibbles are swapped, or 0 and 0.5 are confused."""
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
    """Fault: for some bf16, in either place, a tie goes to the odd code, or saturation or NaN is wrong."""
    other = np.roll(BF16, 1234)
    got = missing(f"cvt.rn.satfinite{relu}.e2m1x2.f32", [BF16, other], tmp_path)
    table = np.array([e2m1_code(float(v), bool(relu)) for v in BF16], np.uint16)
    np.testing.assert_array_equal(got, table << 4 | np.roll(table, 1234))


@pytest.mark.parametrize("rounding", ["rz", "rp"])
@pytest.mark.parametrize("finite", ["", ".satfinite"])
@pytest.mark.parametrize("source", ["f32", "bf16x2"])
def test_e8m0_is_rounded_as_defined(rounding: str, finite: str, source: str, tmp_path: Path) -> None:
    """Fault: some bf16, or an f32 neighbour that differs in the last bit, is rounded wrongly."""
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
    """Fault: some pair of codes is wrong, such as 0xFF (NaN) or 0 (2^-127, a subnormal that a
    flush loses)."""
    codes = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    got = missing("cvt.rn.bf16x2.ue8m0x2", [codes], tmp_path)
    value = [0x7FFF if c == 0xFF else 0x0040 if c == 0 else c << 7 for c in range(256)]
    table = np.array(value, np.uint32)
    np.testing.assert_array_equal(got, table[codes >> 8] << 16 | table[codes & 0xFF])
