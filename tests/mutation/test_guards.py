"""Is every guard of every launcher tried by a refusal that it alone refuses? Each is taken out in turn.

A refusal that another guard refuses as well proves nothing of its own: the guard could go, and nobody would
see it. The guards are found in the source, so a new one without a refusal fails here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.mutation.guards import VARIABLE, guards_of, switchable
from verify.contract.discovery import find_contracts, fixture_file, source_file
from verify.device.interface import Device
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Outcome, Severity, Verdict
from verify.fixture.schema import load_fixtures
from verify.gate.gate import run_checks
from verify.gate.prepare import Prepared, prepare
from verify.gate.selection import Selection
from verify.mutation.planting import with_source
from verify.tokens.operations import KERNELS

NOT_SEEN_FROM_A_LAUNCH = {
    "flash_decode_plan: plan == nullptr": "the launcher gives its plan a result",
    "flash_decode_plan: sm_count < 1": "the launcher asks the device",
    "flash_decode_plan: units > INT_MAX": "keeps choose_splits from overflowing; the next one refuses too",
    "flash_decode_launch: error != cudaSuccess #3": "a device of no multiprocessors is refused by the plan",
    "flash_decode_launch: error != cudaSuccess #4": "what this plan refuses, the one before refused already",
    **{
        f"{kernel}_launch: status != cudaSuccess #2": "a device of no multiprocessors is refused by the plan"
        for kernel in ("fp4_matvec", "fp8_matvec")
    },
    **{
        f"{kernel}_plan: {guard}": reason
        for kernel in ("fp4_matvec", "fp8_matvec")
        for guard, reason in (
            ("!args", "the launcher has looked at them before"),
            ("!result", "the launcher gives its plan a result"),
            ("sm_count < 1", "the launcher asks the device"),
        )
    },
}
"""Guards whose loss changes no answer of the launcher, and why."""


def _named(kernel: str) -> list[tuple[str, int, str]]:
    """(kernel, number, name) of every guard; guards of one text in one function are counted."""
    (contract,) = find_contracts([kernel])
    guards = guards_of(source_file(contract).read_text(encoding="utf-8"))
    plain = [guard.name for guard in guards]
    counted = [f"{n} #{plain[:i].count(n) + 1}" if plain.count(n) > 1 else n for i, n in enumerate(plain)]
    return [(kernel, number, name) for number, name in enumerate(counted)]


GUARDS = [guard for kernel in KERNELS for guard in _named(kernel)]


@cache
def _device() -> Device:
    chosen = select_device("cpu")
    if isinstance(chosen, NoDevice):
        pytest.skip(chosen.reason)
    return chosen


@cache
def _prepared(kernel: str) -> Prepared:
    """The kernel with all its guards removable, and the fixture that its refusals start from."""
    (contract,) = find_contracts([kernel])
    source = source_file(contract).read_text(encoding="utf-8")
    first = load_fixtures(fixture_file(contract), contract)[0].name
    removable = with_source(contract, switchable(source, guards_of(source)))
    info = _device().info()
    return prepare(removable, lambda _: [first], info.architecture, info.sm_count, lambda _: None, False)


def _launched(kernel: str, folder: Path, keep: Path | None = None) -> Outcome:
    ready = _prepared(kernel)
    (outcome,) = run_checks(
        ready, _device(), ("launch",), folder, Selection((ready.contract,), keep=keep), lambda _: None
    )
    return outcome


@pytest.mark.parametrize(("kernel", "number", "name"), GUARDS, ids=[f"{k}-{n}" for k, _, n in GUARDS])
def test_a_removed_guard_is_reported(
    kernel: str, number: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a launcher without this guard passes, because another guard refuses the same bad input."""
    monkeypatch.setenv(VARIABLE, str(number))
    outcome = _launched(kernel, tmp_path / "run")
    wanted = Verdict.CLEAN if name in NOT_SEEN_FROM_A_LAUNCH else Verdict.FINDINGS
    assert outcome.verdict is wanted, outcome.reason or [f.seen for f in outcome.findings]


@pytest.mark.parametrize("kernel", KERNELS)
def test_with_all_its_guards_a_launcher_is_clean(kernel: str, tmp_path: Path) -> None:
    """Fault: the switch itself is what is reported, so that every ablation passes for seen."""
    assert _launched(kernel, tmp_path).verdict is Verdict.CLEAN


def test_every_exception_is_a_guard() -> None:
    """Fault: a reason that stays behind when its guard has gone covers the next one of that name."""
    assert not NOT_SEEN_FROM_A_LAUNCH.keys() - {name for _, _, name in GUARDS}


def test_a_finding_survives_its_own_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a refused call has other shapes than its fixture, and writing its folder ends the command."""
    number = next(
        n for k, n, name in GUARDS if (k, name) == ("fp4_matvec", "shapes_accepted: a.b > kMaxBatch")
    )
    monkeypatch.setenv(VARIABLE, str(number))
    outcome = _launched("fp4_matvec", tmp_path / "run", tmp_path / "kept")
    (finding,) = {f.where: f for f in outcome.findings if f.severity is Severity.ERROR}.values()
    assert finding.where == "refusal nine-vectors"
    assert (Path(finding.folder) / "run.sh").exists()


SOURCE = """
bool sane(int n) {
  if (n > 9) return false;  // if (n > 8) return false;
  return n >= 1 && (n % 2 == 0 || n == 7);
}
bool unasked(int n) { return n > 3; }
int rows(int n) {
  if (n == 0) return 1;
  return n;
}
extern "C" cudaError_t launch(int n, int m, float f) {
  const bool known = n == 4 || n == 8;
  if (m < 0 || !sane(n) || !known) return cudaErrorInvalidValue;
  if (!(f >= 1 && f <= 2)) { return cudaErrorInvalidValue; }
  if (m == 3) return cudaSuccess;
  cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  return cudaSuccess;
}
"""


def test_guards_are_found_down_to_their_parts() -> None:
    """Fault: a part of a condition that is not found is a guard that nobody takes out."""
    found = guards_of(SOURCE)
    assert [(g.name, g.refuses) for g in found] == [
        ("sane: n > 9", True),
        ("sane: n >= 1", False),
        ("sane: n % 2 == 0 || n == 7", False),
        ("launch: n == 4 || n == 8", False),
        ("launch: m < 0", True),
        ("launch: !sane(n)", True),
        ("launch: f >= 1", False),
        ("launch: f <= 2", False),
        ("launch: status != cudaSuccess", True),
    ]
    assert all(SOURCE[g.start : g.end] == g.text for g in found)
