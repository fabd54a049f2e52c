"""Case files and output files: what Python writes is what the harness's own reader sees, and broken files end
in one line."""

from __future__ import annotations

import dataclasses
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from verify.check.matrix import runs_for
from verify.contract.entries import Global
from verify.contract.formats import FORMATS, decode, encode
from verify.contract.model import Buffer, Case, Contract
from verify.oracle.expectation import Quantity
from verify.oracle.tracked import exact
from verify.system.resources import resource_folder
from verify.toolchain.cache import cached, digest
from verify.wire.expected import expected_bytes, interval_keys, ordered_keys
from verify.wire.fills import fill_table
from verify.wire.output import read_output
from verify.wire.pack import CaseFiles, PackError, case_bytes, placement, value_text, write_pack
from verify.wire.run import FILLS, Fill, Fills, Run

READER = Path(__file__).parents[1] / "harness" / "host_reader.cpp"


def nothing(case: Case) -> dict[str, np.ndarray]:
    return {"out": np.zeros((2, 3))}


CONTRACT = Contract(
    name="padded",
    source="padded.cu",
    symbols=("rows", "pitch"),
    buffers=(
        Buffer("x", "bf16", ("rows", 3), strides=("pitch", 1), live=lambda case: np.array([[True], [False]])),
        Buffer("out", "f32", ("rows", 3), role="out"),
    ),
    entry=Global("padded", ("rows",), (32,), ("x", "out", "rows", "pitch * 2")),
    reference=nothing,
    error_model=lambda case: {"out": exact(np.zeros((2, 3)))},
)


def padded_case(pitch: int = 5, *, sparse: bool = False) -> Case:
    x = np.array([[0x3F80, 0x4000, 0x4040], [0xDEAD, 0xDEAD, 0xDEAD]], np.uint16)
    return Case(CONTRACT, "made", "one", {"rows": 2, "pitch": pitch}, {}, {"x": x}, sparse)


@pytest.fixture(scope="session")
def reader() -> Path:
    """The harness's host headers as a plain C++ program."""
    folder = resource_folder("harness_templates")
    headers = sorted(folder.glob("*.hpp"))

    def build(target: Path) -> None:
        command = [
            "g++",
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=address,undefined",
            f"-I{folder}",
        ]
        subprocess.run([*command, "-o", str(target / "reader"), str(READER)], check=True)

    return cached("host-reader", digest(f.read_bytes() for f in [READER, *headers]), build)[0] / "reader"


def read(reader: Path, path: Path, fill: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([reader, path, fill], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("fill", FILLS)
def test_dead_bytes_hold_the_fill_and_live_bytes_the_data(reader: Path, tmp_path: Path, fill: Fill) -> None:
    """Fault: dead data that reaches the device, and a fill that is off by a byte in the padding."""
    (tmp_path / "case").write_bytes(case_bytes(padded_case()))
    lines = read(reader, tmp_path / "case", fill).stdout.splitlines()
    assert [line for line in lines if line.startswith("value")] == [
        "value 2",
        "value 10",
        "value 32",
        "value 0",
    ]
    segments = {
        line.split()[1]: bytes.fromhex(line.split()[3]) for line in lines if line.startswith("segment")
    }
    assert len(segments["x"]) == 2 * (5 + 3)
    assert segments["x"][:6] == bytes.fromhex("803f00404040")
    patterns = {fill_table("bf16", fill)[i : i + 2] for i in range(0, len(fill_table("bf16", fill)), 2)}
    assert {segments["x"][i : i + 2] for i in range(6, 16, 2)} <= patterns
    assert len(segments["out"]) == 24


def test_a_sparse_case_touches_its_runs_and_guards_only(reader: Path, tmp_path: Path) -> None:
    """Fault: a fill of gigabytes where only the neighbourhood of live rows matters."""
    (tmp_path / "case").write_bytes(case_bytes(padded_case(pitch=1 << 20, sparse=True)))
    lines = read(reader, tmp_path / "case", "nan").stdout.splitlines()
    (x,) = (line.split() for line in lines if line.startswith("segment x"))
    assert x[2] == "0"
    assert len(x[3]) // 2 == 6 + 4096


def test_a_fill_is_the_same_wherever_it_is_cut(reader: Path, tmp_path: Path) -> None:
    """Fault: stale values that depend on where a stretch begins, or repeat with a row or a power of two."""
    x = Buffer("x", "bf16", ("rows", 3), strides=("pitch", 1), live=lambda case: np.array([[False], [True]]))
    contract = dataclasses.replace(CONTRACT, buffers=(x, CONTRACT.buffers[1]))
    images = []
    for sparse in (False, True):
        case = dataclasses.replace(padded_case(pitch=200_001, sparse=sparse), contract=contract)
        (tmp_path / "case").write_bytes(case_bytes(case))
        lines = read(reader, tmp_path / "case", "stale").stdout.splitlines()
        (fields,) = (line.split() for line in lines if line.startswith("segment x"))
        images.append((int(fields[2]), bytes.fromhex(fields[3])))
    (start, whole), (offset, part) = images
    assert (start, offset) == (0, 2 * 200_001 - 4096)
    assert whole[offset:] == part
    values = np.frombuffer(whole, np.uint16)[:200_000]
    for distance in (1, 2, 64, 4096, 65536):
        assert np.mean(values[distance:] == values[:-distance]) < 0.05


def test_a_file_cut_short_anywhere_is_refused_in_one_line(reader: Path, tmp_path: Path) -> None:
    """Fault: a reader that runs past the end of a file, or takes half a case for a whole one."""
    whole = case_bytes(padded_case())
    for length in [*range(0, len(whole), 37), len(whole) - 1]:
        (tmp_path / "case").write_bytes(whole[:length])
        done = read(reader, tmp_path / "case", "nan")
        assert done.returncode == 2, f"{length} bytes: {done.stdout}{done.stderr}"
        assert done.stdout.count("\n") == 1
        assert str(tmp_path / "case") in done.stdout


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"role in", b"role no"),
        (b"live 1", b"live 2"),
        (b"data 6", b"data 7"),
        (b"i:10", b"i:ten"),
        (b"sparse 0", b"sparse"),
        (b"bytes 16", b"bytes 4"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    reader: Path, tmp_path: Path, old: bytes, new: bytes
) -> None:
    """Fault: a field that is read but not checked."""
    whole = case_bytes(padded_case())
    assert old in whole
    changed = whole.replace(old, new, 1)
    (tmp_path / "case").write_bytes(changed)
    assert read(reader, tmp_path / "case", "nan").returncode == 2


def test_runs_of_one_case_share_its_file(tmp_path: Path) -> None:
    """Fault: a pack that writes the same megabytes once a fill."""
    case = padded_case()
    runs = [Run(f"one-{fill}", case, fills=Fills(dead=fill)) for fill in FILLS]
    manifest = write_pack(tmp_path, runs)
    assert len(list(tmp_path.glob("*.case"))) == 1
    assert manifest.read_text().count("\nrun ") == len(FILLS)


def test_packs_share_case_files(tmp_path: Path) -> None:
    """Fault: a case written again for every job, or another case's file in its place."""
    files = CaseFiles(tmp_path / "cases")
    cases = [padded_case(), padded_case(pitch=7)]
    packs = [tmp_path / name for name in ("one", "two")]
    for pack in packs:
        write_pack(pack, [Run(f"run-{n}", case) for n, case in enumerate(cases)], files)
    for pack in packs:
        written = sorted(pack.glob("*.case"))
        assert [path.read_bytes() for path in written] == [case_bytes(case) for case in cases]
    assert len(list((tmp_path / "cases").iterdir())) == len(cases)


@pytest.mark.parametrize("run_id", ["a b", "../x", "", "twice"])
def test_a_run_id_that_is_not_a_file_name_is_rejected(tmp_path: Path, run_id: str) -> None:
    """Fault: an output written outside its folder, or over another run's."""
    with pytest.raises(PackError, match="run"):
        write_pack(tmp_path, [Run("twice", padded_case()), Run(run_id, padded_case())])


def test_fills_that_a_poison_check_compares_differ_in_placement() -> None:
    """Fault: buffers that are always aligned better than promised, or always start their allocation."""
    case = padded_case()
    assert len({placement(Run("r", case, fills=Fills(dead=fill))) for fill in FILLS}) == 3
    assert placement(Run("r", case, "live-only", Fills(dead="inf"))) == 0


def test_the_runs_of_one_fixture_meet_each_multiple_of_four_bytes() -> None:
    """Catches a contract that promises 4 bytes and is only tried at 0 and 4 modulo 16."""
    case = padded_case()
    runs = [Run("r", case, fills=Fills(dead=fill)) for fill in FILLS]
    moved = {placement(run) for run in (*runs, Run("r", case, "second-call"))} - {0}
    assert {1 + (number - 1) % 3 for number in moved} == {1, 2, 3}


def test_tools_see_both_ends_of_a_buffer() -> None:
    """Fault: a guard before the buffers of a memcheck run, which hides a read just before one."""
    for check in ("memcheck", "initcheck", "racecheck", "synccheck"):
        runs = runs_for(check, {"one": padded_case()})
        assert {placement(run) for run in runs} == {0}, check


def test_an_input_without_data_is_refused() -> None:
    """Fault: a case whose live bytes would silently be the fill."""
    with pytest.raises(PackError, match="x: is an input without data"):
        case_bytes(replace(padded_case(), arrays={}))
    assert case_bytes(replace(padded_case(), arrays={}), refused=True)


@pytest.mark.parametrize(
    ("value", "text"), [(3, "i:3"), (-1, "i:-1"), (1.5, "f:0x1.8000000000000p+0"), (True, "i:1")]
)
def test_scalars_are_spelled_exactly(value: float, text: str) -> None:
    assert value_text(value, "here") == text


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1, (1, 2), "x", None])
def test_a_scalar_beyond_64_bits_is_rejected(value: object) -> None:
    """Fault: a value that is wrapped on its way."""
    with pytest.raises(PackError, match="here"):
        value_text(value, "here")


def test_an_output_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    """Fault: a half-written file that is judged as zeros."""
    head = (
        "verify-output 1\nrun r\nmode once\nreturned cudaSuccess\nkernels 1\nheld 0\nshared 0\n"
        "intrusions 0\ndifferences 0\n"
    )
    path = tmp_path / "r.out"
    path.write_bytes((head + "data out promised 24\npayload\n").encode() + bytes(24))
    assert read_output(path, padded_case()).outputs["out"].shape == (2, 3)
    for damaged in (path.read_bytes()[:-1], b"", head.encode()):
        path.write_bytes(damaged)
        with pytest.raises(PackError, match=str(path)):
            read_output(path, padded_case())


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "e5m2", "e4m3"])
def test_intervals_hold_exactly_the_elements_within_the_bound(dtype: str) -> None:
    """Fault: an interval that is one step too wide or too narrow after rounding its ends."""
    generator = np.random.default_rng(5)
    value = generator.standard_normal(200)
    bound = np.abs(generator.standard_normal(200)) * 0.05 * np.abs(value)
    low, high = interval_keys(Quantity("out", value, bound, dtype), dtype)
    near = encode(dtype, value).astype(np.int64)
    for step in range(-2, 3):
        raw = (near + step).astype(FORMATS[dtype].dtype)
        seen = np.asarray(decode(dtype, raw), np.float64)
        inside = np.abs(seen - value) <= bound
        keys = ordered_keys(dtype, raw)
        assert np.array_equal(inside, (low <= keys) & (keys <= high))


def test_expected_file_names_its_outputs() -> None:
    expected = {"out": Quantity("out", np.array([[np.nan, np.inf, 0.0]] * 2), np.zeros((2, 3)), "f32")}
    head, _, payload = expected_bytes(padded_case(), expected).partition(b"payload\n")
    assert b"quantity out element 4 encoding sign largest 2139095040 count 6" in head
    assert len(payload) == 2 * 6 * 8
