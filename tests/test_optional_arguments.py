"""Optional arguments: a fixture passes null, every check works with it, and bad uses are one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from verify.cli.show import _buffers
from verify.contract.discovery import ContractError, find_contracts, fixture_file
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Verdict
from verify.fixture.cases import first_case
from verify.fixture.resolve import resolve_fixtures
from verify.fixture.schema import FixtureError, load_fixtures
from verify.gate.gate import run_gate
from verify.gate.selection import Selection
from verify.report.report import Report

SOURCE = """\
#include <cuda_runtime.h>

struct Plan { int blocks; int reads_bias; };

__global__ void shifted(const float* x, const float* bias, float* y, float* sums, const int* unused, int n) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= n) return;
    const float value = x[i] + (BIAS);
    y[i] = value;
    if (SUMS) sums[i] = value + value;
}

cudaError_t shifted_plan(const float* bias, int n, Plan* plan) {
    *plan = {(n + 31) / 32, bias != nullptr};
    return cudaSuccess;
}

cudaError_t shifted_launch(const float* x, const float* bias, float* y, float* sums, size_t bytes, int n,
                           cudaStream_t stream) {
    if (x == nullptr || y == nullptr || (bytes != 0) != (sums != nullptr)) return cudaErrorInvalidValue;
    shifted<<<(n + 31) / 32, 32, 0, stream>>>(x, bias, y, sums, nullptr, n);
    return cudaGetLastError();
}
"""
RIGHT = {"BIAS": "bias ? bias[i] : 1.0f", "SUMS": "sums"}

CONTRACT = """\
from verify import Buffer, Contract, Global, Launcher, Plan, Refusal, Symbol
from verify.oracle import tracked as t


def exact(case):
    y = case.f64("x") + (case.f64("bias") if case.given("bias") else 1.0)
    return {"y": y, "sums": 2 * y}


def modelled(case):
    y = t.exact(case.f64("x")) + (t.exact(case.f64("bias")) if case.given("bias") else 1.0)
    return {"y": y, "sums": y + y}


CONTRACT = Contract(
    name="shifted", source="shifted.cu",
    symbols=("n", Symbol("with_bias", default=1, choices=(0, 1)), Symbol("with_sums", default=1)),
    buffers=(
        Buffer("x", "f32", ("n",), align=4),
        Buffer("bias", "f32", ("n",), align=4, given="with_bias"),
        Buffer("y", "f32", ("n",), "out", align=4),
        Buffer("sums", "f32", ("n",), "out", align=4, given="with_sums != 0"),
    ),
    plan=Plan("shifted_plan", "Plan", ("blocks", "reads_bias"), args=("bias", "n"),
              promised={"reads_bias": "with_bias"}),
    entry=Launcher("shifted_launch", ("x", "bias", "y", "sums", "bytes(sums)", "n", "stream")),
    refusals=(Refusal("no-input", null=("x",)), Refusal("no-sums", null=("sums",))),
    row_reads={"x": 1, "bias": 1},
    reference=exact, error_model=modelled,
)
"""
FIXTURES = """\
kernel = "shifted"
[[fixture]]
name = "all"
pins = "Everything is there, and the last block is not full."
symbols = {n = 45}
[[fixture]]
name = "no-bias"
pins = "A null pointer that the kernel looks behind."
symbols = {n = 45, with_bias = 0}
[[fixture]]
name = "only-y"
pins = "Several null pointers at once in one call."
symbols = {n = 45, with_bias = 0, with_sums = 0}
"""

Verify = Callable[..., Report]


def write(folder: Path, contract: str = CONTRACT, fixtures: str = FIXTURES, **parts: str) -> None:
    source = SOURCE
    for name, text in {**RIGHT, **parts}.items():
        source = source.replace(f"({name})", f"({text})")
    (folder / "shifted.cu").write_text(source)
    (folder / "shifted_contract.py").write_text(contract)
    (folder / "shifted.toml").write_text(fixtures)


@pytest.fixture
def verify(tmp_path: Path, device_name: str) -> Verify:
    """Run the gate over the kernel, with other text in some of its places."""

    def run(contract: str = CONTRACT, checks: tuple[str, ...] = (), **parts: str) -> Report:
        device = select_device(device_name)
        if isinstance(device, NoDevice):
            pytest.skip(device.reason)
        write(tmp_path, contract, **parts)
        selection = Selection(tuple(find_contracts([str(tmp_path)])), checks=checks, architecture="sm_90")
        return run_gate(selection, device, "", lambda text: None)

    return run


def test_null_for_an_optional_argument_is_clean_under_every_check(verify: Verify) -> None:
    """Fault: a check that wants data, a result or a plan of what is not there, or calls it a fault."""
    report = verify()
    assert report.verdict is Verdict.CLEAN, [
        (o.check, o.fixture, o.reason, [f.seen for f in o.findings])
        for kernel in report.kernels
        for o in kernel.outcomes
        if o.verdict is not Verdict.CLEAN
    ]
    assert {o.fixture for o in report.kernels[0].outcomes} == {"all", "no-bias", "only-y"}


@pytest.mark.parametrize(
    ("parts", "checks", "fixtures"),
    [
        ({"BIAS": "bias[i]"}, ("memcheck",), {"no-bias", "only-y"}),
        ({"SUMS": "true"}, ("memcheck",), {"only-y"}),
        ({"BIAS": "1.0f"}, ("compare",), {"all"}),
        ({"SUMS": "bias"}, ("compare",), {"no-bias"}),
    ],
)
def test_a_kernel_that_ignores_whether_an_argument_is_given_is_found(
    verify: Verify, parts: dict[str, str], checks: tuple[str, ...], fixtures: set[str]
) -> None:
    """Fault: null that never reaches the kernel, and an argument that is never given."""
    report = verify(checks=checks, **parts)
    outcomes = [o for kernel in report.kernels for o in kernel.outcomes]
    assert {o.fixture for o in outcomes if o.findings} == fixtures


def test_the_number_0_is_null_for_a_pointer_that_no_buffer_stands_for(verify: Verify) -> None:
    """Fault: a pointer parameter that a contract cannot leave out."""
    contract = CONTRACT.replace(
        'Launcher("shifted_launch", ("x", "bias", "y", "sums", "bytes(sums)", "n", "stream"))',
        'Global("shifted", ("blocks",), (32,), ("x", "bias", "y", "sums", 0, "n"))',
    ).replace('refusals=(Refusal("no-input", null=("x",)), Refusal("no-sums", null=("sums",))),', "")
    assert verify(contract, checks=("compare", "memcheck")).verdict is Verdict.CLEAN


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('given="with_bias"', 'given="bias_given"', "bias: given: 'bias_given' is not one of n, with_bias"),
        ('given="with_bias"', 'given="blocks"', "bias: given: 'blocks' is not one of n, with_bias"),
        ('given="with_bias"', "given=0", "bias: given: must be an expression over symbols, is 0"),
        ('given="with_bias"', "given=()", "bias: given: must be an integer or text, is ()"),
        ('("x", "bias", "y"', '("x", 0, "y"', "bias: given: no entry takes bias as an argument"),
        (
            "row_reads=",
            'captured_at={"with_bias": 1}, row_reads=',
            "bias: given: with_bias changes between replays of a graph (captured_at), but a pointer cannot",
        ),
        (
            "row_reads=",
            'intermediates=(Intermediate("part", "bias", "f32", (1,)),), observe=lambda _, r: r, row_reads=',
            "bias: given: the intermediate part is a view of it, so it cannot be a null pointer",
        ),
    ],
)
def test_a_bad_use_in_a_contract_is_one_line(tmp_path: Path, old: str, new: str, line: str) -> None:
    """Fault: an optional argument that is never null, or null where nothing can be done about it."""
    write(tmp_path, CONTRACT.replace(old, new).replace("Launcher,", "Intermediate, Launcher,"))
    with pytest.raises(ContractError) as caught:
        find_contracts([str(tmp_path)])
    assert str(caught.value).startswith(f"{tmp_path / 'shifted_contract.py'}: {line}")


def test_a_fixture_without_any_output_is_one_line(tmp_path: Path) -> None:
    """Fault: a fixture in which there is nothing to compare."""
    write(
        tmp_path,
        CONTRACT.replace('"out", align=4),', '"out", align=4, given="with_sums"),'),
        FIXTURES,
    )
    (contract,) = find_contracts([str(tmp_path)])
    fixtures = load_fixtures(fixture_file(contract), contract)
    with pytest.raises(FixtureError, match="only-y: y, sums are null pointers, so there is no output"):
        resolve_fixtures(fixtures, contract, lambda asked: [{"blocks": 2, "reads_bias": 1} for _ in asked])


def test_a_refusal_of_what_is_not_given_is_one_line(verify: Verify) -> None:
    """Fault: a refusal that is accepted because its argument is null already, and may be."""
    contract = CONTRACT.replace('"no-sums", null=("sums",)', '"no-sums", null=("sums",), fixture="only-y"')
    with pytest.raises(FixtureError, match=r"refusal no-sums: sums is a null pointer in fixture only-y"):
        verify(contract, checks=("launch",))


def test_a_reference_that_reads_what_is_not_given_names_it(tmp_path: Path) -> None:
    """Fault: a reference that gets stale or made-up values for an argument that is null."""
    write(tmp_path)
    (contract,) = find_contracts([str(tmp_path)])
    fixtures = load_fixtures(fixture_file(contract), contract)
    plans = [{"blocks": 2, "reads_bias": 1}] * len(fixtures)
    resolved = resolve_fixtures(fixtures, contract, lambda _: plans)
    case = first_case(contract, resolved[1])
    assert not case.given("bias") and "bias" not in case.arrays
    with pytest.raises(LookupError, match=r"bias is a null pointer here: check case.given\('bias'\) first"):
        case.f64("bias")
    assert "bias null" in _buffers(case) and "sums f32[45] out" in _buffers(case)
