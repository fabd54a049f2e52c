"""Does the judge see planted faults? Each mutant must be reported by every check that its table names.

A check that misses its mutant would pass the same fault in a user's kernel. The other direction, silence on
the right kernel, is tests/mutants/test_right_kernels.py. ``python -m tests.mutants`` runs the same trials
side by side and prints them as a table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.planted import (
    Mutant,
    MutantError,
    PatchError,
    apply_patch,
    kernels_with_mutants,
    mutants_of,
    mutated_source,
    plant,
)
from tests.mutants.trial import Fate, Trials, judge
from verify.contract.discovery import find_contracts, source_file
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Finding, Outcome, SourceLine

MUTANTS = [m for kernel in kernels_with_mutants() for m in mutants_of(kernel)]


@pytest.fixture(scope="session")
def trials(device_name: str) -> Trials:
    device = select_device(device_name)
    if isinstance(device, NoDevice):
        pytest.skip(device.reason)
    return Trials(device)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.kernel}-{m.name}")
def test_patch_applies(mutant: Mutant) -> None:
    """Fault: a patch no longer fits its kernel, so that its test proves nothing."""
    (contract,) = find_contracts([mutant.kernel])
    assert mutated_source(contract, mutant) != source_file(contract).read_text(encoding="utf-8")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.kernel}-{m.name}")
def test_is_reported(mutant: Mutant, trials: Trials) -> None:
    """Fault: a named check misses the planted fault, or a tool reports it without a line of the kernel."""
    if not mutant.expected(trials.device.name):
        pytest.skip(f"cannot be seen on {trials.device.name}: {mutant.fault}")
    trial = trials.run(mutant, plant(find_contracts([mutant.kernel])[0], mutant))
    assert trial.fate is Fate.KILLED, f"{mutant.fault} {trial.missing}"


def test_every_patch_is_listed() -> None:
    """Fault: a patch without a row is never tried."""
    listed = {m.patch for m in MUTANTS}
    unlisted = [p for k in kernels_with_mutants() for p in mutants_of(k)[0].patch.parent.glob("*.patch")]
    assert not [p.name for p in unlisted if p not in listed]


def test_a_hunk_must_stand_exactly_once() -> None:
    """Fault: a patch applies at the wrong one of two places and plants another fault."""
    patch = "--- a\n+++ b\n@@ -1,1 +1,1 @@\n-  x = 1;\n+  x = 2;\n"
    assert apply_patch("{\n  x = 1;\n}\n", patch, "p") == "{\n  x = 2;\n}\n"
    for text in ("{\n}\n", "  x = 1;\n  x = 1;\n"):
        with pytest.raises(PatchError, match="hunk 1"):
            apply_patch(text, patch, "p")


MUTANT = Mutant("k", "m", Path("m.patch"), "A fault.", ("memcheck", "compare"), kind="outside")


def _reported(check: str, kind: str, source: SourceLine | None = None) -> Outcome:
    return Outcome.judge(
        check, "k", "f", [Finding(check, "k", "k/f/p", kind, "seen", "promised", source=source)]
    )


def test_only_full_reports_kill() -> None:
    """Fault: a mutant counts as killed although a named check misses it or reports something else."""
    located = _reported("memcheck", "Invalid read", SourceLine("/somewhere/k.cu", 7))
    compare = _reported("compare", "outside the bound")
    silent = Outcome.judge("compare", "k", "f", [])
    unknown = Outcome.inconclusive("compare", "k", "f", "the tool is missing")
    elsewhere = _reported("memcheck", "Invalid read", SourceLine("/somewhere/harness.cu", 7))
    assert judge(MUTANT, "gpu", [located, compare], "k.cu") == (Fate.KILLED, "")
    assert judge(MUTANT, "gpu", [located, silent], "k.cu")[0] is Fate.SURVIVED
    assert judge(MUTANT, "gpu", [located, unknown], "k.cu")[0] is Fate.UNDECIDED
    assert judge(MUTANT, "gpu", [located], "k.cu")[0] is Fate.UNDECIDED
    assert judge(MUTANT, "gpu", [elsewhere, compare], "k.cu")[0] is Fate.SURVIVED
    assert judge(MUTANT, "gpu", [located, _reported("compare", "hang")], "k.cu")[0] is Fate.SURVIVED


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"name": "a"}, "fault"),
        ({"name": "a", "fault": "b"}, "checks"),
        ({"name": "a", "fault": "b", "checks": ["lint"]}, "lint"),
        ({"name": "a", "fault": "b", "checks": ["compare"], "fixture": "x"}, "fixture"),
    ],
)
def test_bad_row_is_refused(row: dict[str, object], field: str) -> None:
    """Fault: a row without a check, or with an unknown field, passes for a tested fault."""
    from tests.mutants.planted import _mutant

    with pytest.raises(MutantError, match=field):
        _mutant("k", Path("mutants.toml"), row)
