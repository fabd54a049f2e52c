"""Is the catalogue whole and in order, and does a full run report what it plants?

``python -m verify mutate --catalogue`` tries all of it; here is a sample of every kind.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from verify.contract.discovery import find_contracts, source_file
from verify.contract.model import Contract
from verify.device.select import NoDevice, select_device
from verify.mutation.bench import Bench
from verify.mutation.catalogue import (
    EQUIVALENTS,
    TABLE,
    CatalogueError,
    PatchError,
    apply_patch,
    catalogue_folder,
    catalogue_of,
)
from verify.mutation.kinds import NOT_PRESENT, Kind
from verify.mutation.mutant import Fate, Mutant
from verify.mutation.wanted import operators_mutants_of, sampled
from verify.tokens.operations import KERNELS

EXAMPLE = Path(__file__).parents[2] / "examples/row_softmax"
LEAST_OF_A_KIND = 3
ORDER = ("fp8_matvec", "flash_decode")
"""Kernels that have all kinds between them, the one that is tried more quickly first."""


def mutants_of(kernel: str) -> tuple[Mutant, ...]:
    return catalogue_of(find_contracts([kernel])[0])


def test_every_kind_that_a_kernel_has_is_in_the_catalogue() -> None:
    """Fault: a kind of fault that people really make is planted nowhere."""
    counts = Counter(m.kind for kernel in KERNELS for m in mutants_of(kernel))
    few = {kind: counts[kind] for kind in Kind if counts[kind] < LEAST_OF_A_KIND and kind not in NOT_PRESENT}
    assert few.keys() <= {Kind.ARITHMETIC}  # which the operators make
    assert not counts.keys() & NOT_PRESENT.keys()


def sample_of(kernel: str, device: str) -> list[Mutant]:
    """One mutant of each kind that no kernel before this one has; what the newest architecture shows."""
    taken = {m.kind for other in ORDER[: ORDER.index(kernel)] for m in mutants_of(other)}
    own = [m for m in mutants_of(kernel) if m.kind not in taken and m.checks and m.expected(device)]
    return sampled(own, len({m.kind for m in own}))


@pytest.mark.parametrize("kernel", ORDER)
def test_a_sample_is_reported(kernel: str, device_name: str) -> None:
    """Fault: a check has gone blind for a fault that it used to report."""
    device = select_device(device_name)
    if isinstance(device, NoDevice):
        pytest.skip(device.reason)
    (contract,) = find_contracts([kernel])
    bench = Bench(contract, device, None if device.name == "gpu" else "sm_90", lambda _: None)
    results = [bench.run(m) for m in sample_of(kernel, device.name)]
    assert {r.fate for r in results} == {Fate.KILLED}, [r for r in results if r.fate is not Fate.KILLED]


def test_a_hunk_must_stand_exactly_once() -> None:
    """Fault: a patch is applied at the wrong one of two places, and plants another fault than its row
    says."""
    patch = "--- a\n+++ b\n@@ -1,1 +1,1 @@\n-  x = 1;\n+  x = 2;\n"
    assert apply_patch("{\n  x = 1;\n}\n", patch, "p") == "{\n  x = 2;\n}\n"
    for text in ("{\n}\n", "  x = 1;\n  x = 1;\n"):
        with pytest.raises(PatchError, match="hunk 1"):
            apply_patch(text, patch, "p")


@pytest.fixture
def own(tmp_path: Path) -> Contract:
    """The example in a folder of its own, with a catalogue of one row."""
    for file in EXAMPLE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    (contract,) = find_contracts([str(tmp_path / "row_softmax.cu")])
    folder = catalogue_folder(contract)
    folder.mkdir(parents=True)
    old = "        value = maximum ? fmaxf(value, other) : value + other;"
    patch = f"@@ -7 +7 @@\n-{old}\n+        value = other;\n"
    (folder / "a.patch").write_text(patch)
    write(contract, 'name = "a"\nkind = "warp"\nfault = "A fault."\nchecks = ["compare"]\n')
    return contract


def write(contract: Contract, *rows: str) -> None:
    text = "\n".join(f"[[mutant]]\n{row}" for row in rows)
    (catalogue_folder(contract) / TABLE).write_text(text)


def test_a_user_s_catalogue_stands_beside_the_contract(own: Contract) -> None:
    """Fault: only the suite's own kernels can have a catalogue."""
    (mutant,) = catalogue_of(own)
    assert (mutant.name, mutant.kind, mutant.line, mutant.device_only) == ("a", Kind.WARP, 7, True)
    assert "value = other;" in mutant.source


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('name = "a"\nkind = "warp"', "fault: is missing"),
        ('name = "a"\nkind = "warp"\nfault = "b"', "name none"),
        ('name = "a"\nkind = "odd"\nfault = "b"\nchecks = ["compare"]', "'odd' is not one of"),
        ('name = "a"\nkind = "warp"\nfault = "b"\nchecks = ["lint"]', "'lint' is not one of"),
        ('name = "a"\nkind = "warp"\nfault = "b"\nchecks = ["compare"]\nfixtures = "x"', "fixtures: is not"),
        ('name = "b"\nkind = "warp"\nfault = "b"\nchecks = ["compare"]', "there is no"),
    ],
)
def test_a_bad_row_is_refused(own: Contract, row: str, words: str) -> None:
    """Fault: a row without a check, or with an unknown field, passes for a tested fault."""
    write(own, row)
    with pytest.raises(CatalogueError, match=words):
        catalogue_of(own)


def test_a_patch_that_no_row_names_is_refused(own: Contract) -> None:
    """Fault: a patch lies there and is never tried."""
    (catalogue_folder(own) / "b.patch").write_text("")
    with pytest.raises(CatalogueError, match=r"no row names b\.patch"):
        catalogue_of(own)


def test_a_patch_that_does_not_fit_any_more_is_an_error(own: Contract) -> None:
    """Fault: the kernel has changed, and its mutant plants nothing or is skipped."""
    source = source_file(own)
    source.write_text(source.read_text().replace("value + other", "other + value"))
    with pytest.raises(PatchError, match="hunk 1"):
        catalogue_of(own)


def test_a_reason_follows_its_line_and_dies_with_it(own: Contract) -> None:
    """Fault: a reason of a line that has changed excuses a mutant of what stands there now."""
    file = catalogue_folder(own) / EQUIVALENTS
    line = "if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;"
    file.write_text(f'[[equivalent]]\noperator = "guard-removed"\ntext = "{line}"\nreason = "All alike."\n')
    source = source_file(own)
    source.write_text(f"// one line more\n{source.read_text()}")
    reasons = {m.name: m.equivalent for m in operators_mutants_of(own) if m.equivalent}
    assert reasons == {"guard-removed@11": "All alike."}
    source.write_text(source.read_text().replace("% 32 == 0", "% 32 < 1"))
    with pytest.raises(CatalogueError, match="no mutant number 1"):
        operators_mutants_of(own)
