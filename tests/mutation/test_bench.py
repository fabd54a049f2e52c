"""What becomes of a mutant: reported, the same program, endless, or none that compiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from verify.contract.discovery import find_contracts, source_file
from verify.contract.model import Contract
from verify.device.cpu import CpuDevice
from verify.harness.build import build_harness
from verify.harness.rebuild import host_side, rebuild_device
from verify.mutation.bench import Bench
from verify.mutation.catalogue import is_device_only, line_of_change
from verify.mutation.equivalence import device_code, host_code
from verify.mutation.kinds import Kind
from verify.mutation.mutant import Fate, Mutant, Origin
from verify.mutation.planting import with_source
from verify.source.syntax import parse

EXAMPLE = Path(__file__).parents[2] / "examples/row_softmax/row_softmax.cu"
ARCHITECTURE = "sm_90"


@pytest.fixture(scope="module")
def contract() -> Contract:
    return find_contracts([str(EXAMPLE)])[0]


@pytest.fixture(scope="module")
def bench(contract: Contract) -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIFY_RUN_SECONDS", "10")  # what an endless mutant waits for
        yield Bench(contract, CpuDevice(), ARCHITECTURE, lambda _: None)


def changed(old: str, new: str, **how: object) -> Mutant:
    """The example with one text replaced."""
    original = EXAMPLE.read_text()
    assert original.count(old) == 1
    source = original.replace(old, new)
    device_only = is_device_only(parse(original), source)
    line = line_of_change(original, source)
    known = {"origin": Origin.OPERATOR, "device_only": device_only, **how}
    return Mutant("row_softmax", "m", Kind.BOUNDS, "A fault.", source, line, **known)  # type: ignore[arg-type]


REDUCE = "value = maximum ? fmaxf(value, other) : value + other;"


@pytest.mark.parametrize(
    ("old", "new", "fate", "killer"),
    [
        (REDUCE, REDUCE.replace("+", "-"), Fate.KILLED, "compare"),
        ("offset /= 2", "offset /= 1", Fate.KILLED, "compare"),  # nothing changes any more: a deadlock
        ("offset /= 2", "offset += 1", Fate.TIMED_OUT, ""),
        ("offset /= 2", "offset = offset / 2", Fate.EQUIVALENT, ""),
        ("// Row softmax", "// Softmax of rows", Fate.EQUIVALENT, ""),
        (REDUCE, "value = nothing;", Fate.NOT_COMPILED, ""),
    ],
)  # fmt: skip
def test_fate(bench: Bench, old: str, new: str, fate: Fate, killer: str) -> None:
    """Fault: a hang counts as a report, the same program as a survivor, or no program as a kill."""
    result = bench.run(changed(old, new))
    assert result.fate is fate, result
    assert killer in result.killers if killer else not result.killers
    assert bool(result.reason) == (fate in (Fate.TIMED_OUT, Fate.NOT_COMPILED))


def test_every_check_runs_beside_the_rules_of_the_field(bench: Bench) -> None:
    """Fault: all killers are requested and the first one ends the run; or a rule gets other outputs."""
    result = bench.run(changed(REDUCE, REDUCE.replace("+", "-")), every=True)
    assert {"compare", "poison"} < {*result.killers, "poison"} and len(result.killers) > 1
    assert result.caught["NMSE 5e-4"] and result.caught["cosine 0.999"]
    # One element of a padded row, wrong by a part in a thousand: the bound sees it, no tolerance does.
    slight = bench.run(changed("/ sum;", "/ sum * (c == 3 ? 1.001f : 1.0f);"), every=True)
    assert slight.fate is Fate.KILLED and not any(slight.caught.values())


def test_a_rows_promise_is_checked(bench: Bench) -> None:
    """Fault: a catalogue names a check that never reports its mutant, unnoticed."""
    mutant = changed(
        "c < columns; c += blockDim.x) largest", "c < columns + 1; c += blockDim.x) largest",
        origin=Origin.CATALOGUE, checks=("memcheck", "launch"), finding="Invalid",
    )  # fmt: skip
    result = bench.run(mutant, every=True)
    assert result.fate is Fate.KILLED and result.silent == ("launch",)


def test_explained_and_gpu_only_mutants_are_not_run(contract: Contract) -> None:
    """Fault: an explained equivalent counts as a survivor, or a GPU's mutant as one that the CPU missed."""
    idle = Bench(contract, CpuDevice(), ARCHITECTURE, lambda _: None)
    assert idle.run(changed(REDUCE, "", equivalent="why")).fate is Fate.EXPLAINED
    assert idle.run(changed(REDUCE, "", devices=("gpu",))).fate is Fate.NOT_VISIBLE


def test_a_device_only_rebuild_is_the_whole_build(contract: Contract) -> None:
    """Fault: exchanged device code is another than a whole build's, or the host asks for kernels by a name
    that it does not have."""
    mutant = changed(REDUCE, REDUCE.replace("+", "-"))
    assert mutant.device_only
    right = build_harness(contract, (ARCHITECTURE,), lambda _: None, machine_code=False)
    planted = with_source(contract, mutant.source)
    rebuilt = rebuild_device(host_side(right), planted)
    whole = build_harness(planted, (ARCHITECTURE,), lambda _: None, machine_code=False)
    assert device_code(rebuilt.binary) == device_code(whole.binary) != device_code(right.binary)


def test_code_that_cannot_be_exchanged_is_built_as_a_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: where objcopy is missing, each mutant of a device function is listed as one that does not
    compile."""
    monkeypatch.setattr("verify.harness.rebuild.OBJCOPY", "/nowhere/objcopy")
    assert bench.run(changed(REDUCE, REDUCE.replace("+ other", "+ other * 3"))).fate is Fate.KILLED


def test_host_code_differs_only_where_it_does(contract: Contract) -> None:
    """Fault: line numbers make two host codes differ, or another constant leaves them alike."""
    source = source_file(contract).read_text() + "int own_launcher(int n) { return n + 1; }\n"
    built = build_harness(contract, (ARCHITECTURE,), lambda _: None, machine_code=False)
    texts = (source, f"\n\n{source}// more\n", source.replace("n + 1", "n + 2"))
    one, same, other = (
        host_code(with_source(contract, text), built.architectures, built.toolchain) for text in texts
    )
    assert one == same != other


@pytest.mark.parametrize(
    ("old", "new", "only"),
    [
        (REDUCE, "", True),
        ("__device__ float block_reduce", "__device__ double block_reduce", False),
        ("#include <cuda_runtime.h>", "#include <cuda_runtime.h>\nint more;", False),
    ],
)
def test_what_is_in_a_device_function_s_body(old: str, new: str, only: bool) -> None:
    """Fault: a change of a signature, or outside functions, is rebuilt as if the host did not see it."""
    assert changed(old, new).device_only is only
