"""Faults of decode attention, made head by head in NumPy, are named; a fault that is only like one is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.contracts.attention.flash_plan import flash_contract, resolved
from verify.contract.formats import round_to
from verify.contract.model import Case
from verify.contracts.attention.faulty import Faulty, merge_in_lanes, online
from verify.contracts.attention.reference import Head, attention_heads, softmax_scale
from verify.diagnosis.altered import altered
from verify.diagnosis.diagnose import Diagnosis, diagnose
from verify.diagnosis.evidence import Evidence
from verify.fixture.cases import build_case
from verify.oracle.expectation import expect

PROFILES = ("normal", "coded", "rising")
Parts = list[np.ndarray]


def cases(fixture: str) -> list[Case]:
    one = next(r for r in resolved() if r.fixture.name == fixture)
    made = (build_case(flash_contract(), one, p) for p in flash_contract().profiles if p.name in PROFILES)
    return [altered(case) for case in made]


def parts_of(head: Head) -> Parts:
    return [np.arange(a, b) for a, b in zip(head.edges, head.edges[1:], strict=False)]


def kernel(
    case: Case,
    parts: Callable[[Head], Parts] = parts_of,
    merged: Callable[[Parts], Parts] = lambda parts: parts,
    lost: Callable[[int], np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Attention over lists of positions, by split and over those that are merged; lost: not summed in l."""
    given = {name: np.array(value) for name, value in case.reference.items()}
    out = given["out"].reshape(case["B"], case["NH"], case["D"])
    scale = softmax_scale(case)

    def over(q: np.ndarray, head: Head, at: np.ndarray) -> tuple[np.ndarray, float]:
        weights = np.exp(scale * (head.k[at] @ q))
        summed = weights if lost is None else weights[~lost(len(at))]
        return weights @ head.v[at] / summed.sum(), float(np.log(summed.sum()))

    for head in attention_heads(case):
        own = parts(head)
        for number, q in enumerate(head.q):
            query = head.heads.start + number
            sums = []
            for split, at in enumerate(own):
                if len(at):
                    o, lse = over(q, head, at)
                    given["partial_out"][head.batch, query, split] = o
                    given["partial_lse"][head.batch, query, split] = lse
                    sums.append((o, lse))
                else:
                    given["partial_out"][head.batch, query, split] = 0.0
                    given["partial_lse"][head.batch, query, split] = -np.inf
            kept = [over(q, head, at) for at in merged([a for a in own if len(a)])]
            logs = np.array([lse for _, lse in kept])
            share = np.exp(logs - logs.max())
            out[head.batch, query] = sum(s * o for s, (o, _) in zip(share, kept, strict=True)) / share.sum()
    return given


def said_of(
    fixture: str, faulty: Callable[[Case], dict[str, np.ndarray]], spoil: bool = False
) -> Diagnosis | None:
    """The diagnosis of what a faulty kernel gives in the profiles of a fixture."""
    runs = []
    for case in cases(fixture):
        given = faulty(case)
        given["out"] = round_to("bf16", given["out"])
        if spoil:
            given["partial_out"][0, -1, 0] *= 1.02
        runs.append(Evidence(case, expect(case), given))
    return diagnose(sorted(runs, key=lambda run: not run.fails), seconds=60)


def without(position: int) -> Callable[[Case], dict[str, np.ndarray]]:
    return lambda case: kernel(case, lambda head: [p[p != position - head.lo] for p in parts_of(head)])


def shorter(head: Head) -> Parts:
    return [p[:-1] if len(p) and p[-1] + 1 < len(head.k) else p for p in parts_of(head)]


FAULTS: dict[str, tuple[str, Callable[[Case], dict[str, np.ndarray]]]] = {
    "position 40 (split 2, tile 0, slot 40) dropped": ("split-edge-plus-1", without(40)),
    "the last position of each split dropped where another follows": (
        "split-edge-plus-1",
        lambda case: kernel(case, shorter),
    ),
    "the last split left out of the merge": (
        "splits-33",
        lambda case: kernel(case, merged=lambda parts: parts[:-1]),
    ),
    "split 3 counted twice in the merge": (
        "splits-33",
        lambda case: kernel(case, merged=lambda parts: [*parts, parts[3]]),
    ),
}


@pytest.mark.parametrize("says", FAULTS)
def test_fault_is_named(says: str) -> None:
    """Fault: a wrong output is shown, and which position or split is missing is left to a person."""
    fixture, faulty = FAULTS[says]
    found = said_of(fixture, faulty)
    assert found is not None
    assert found.certain, found.says
    assert says in found.says


@pytest.mark.parametrize("says", FAULTS)
def test_what_one_split_contradicts_is_not_named(says: str) -> None:
    """Fault: the outputs of a fault are recognised although something else is wrong as well."""
    fixture, faulty = FAULTS[says]
    assert said_of(fixture, faulty, spoil=True) is None


def test_two_faults_at_once_are_not_one() -> None:
    """Fault: of two positions that are lost, one is named with confidence."""

    def two(case: Case) -> dict[str, np.ndarray]:
        return kernel(
            case,
            lambda head: [p[(p != 40 - head.lo) & (p != 13 - head.lo)] for p in parts_of(head)],
        )

    assert said_of("split-edge-plus-1", two) is None


@pytest.mark.parametrize("fixture", ["split-edge-plus-1", "window-plus-1", "ragged-empty-row", "splits-33"])
def test_a_kernel_without_a_fault_gives_the_reference(fixture: str) -> None:
    """Fault: what is called the output of a fault has a second one, of the model of the kernel itself."""
    right = (
        Faulty(),
        Faulty(attend=online()),
        Faulty(merge=merge_in_lanes(8, 1.0, 1.0, 5)),
        Faulty(heads=lambda case: list(attention_heads(case))),
    )
    for case in cases(fixture):
        for model in right:
            given = model.gives(case)
            for name, value in case.reference.items():
                np.testing.assert_allclose(given[name], value, rtol=1e-9, atol=1e-11, equal_nan=True)
