"""The derived bounds of flash decoding: never exceeded by a right kernel, and not wider than they must be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.contracts.attention.sampled_heads import Comparison, comparisons, held_against_bounds
from verify.contracts.attention.profiles import ATTENTION_PROFILES
from verify.contracts.attention.reference import Head

SAMPLES = 400_000
QUANTITIES = ("out", "partial_out", "partial_lse")


@pytest.fixture(scope="module")
def sampled() -> list[Comparison]:
    return list(comparisons(seed=2024, elements=SAMPLES))


def test_a_right_kernel_never_exceeds_its_bound(sampled: list[Comparison]) -> None:
    """Fault: a missing rounding term: over 400,000 elements, four tensor core models, fused and unfused
    updates, random tiles, splits and merge orders, and ex2 erring as much as it may."""
    assert sum(e.size for c in sampled for e in c.errors.values()) >= SAMPLES
    for comparison in sampled:
        for name in QUANTITIES:
            over = comparison.errors[name] > comparison.bounds[name]
            where = f"{comparison.profile}, {comparison.simulation.core}, splits {comparison.head.edges}"
            assert not over.any(), f"{name}: {over.sum()} of {over.size} elements past the bound ({where})"


def test_every_way_to_compute_was_sampled(sampled: list[Comparison]) -> None:
    """Fault: a sampler that never draws one of the ways, which would make the soundness test hollow."""
    assert {c.profile for c in sampled} == {p.name for p in ATTENTION_PROFILES}
    ways = {(c.simulation.core, c.simulation.fused, c.simulation.weight_pair) for c in sampled}
    assert len(ways) == 16


def test_the_bound_is_tight(
    sampled: list[Comparison], record_property: Callable[[str, object], None]
) -> None:
    """Fault: a bound so wide that faults hide in it: median slack under 4 on outputs; partials reported."""
    medians = {}
    for name in QUANTITIES:
        slacks = [c.slack(name) for c in sampled]
        medians[name] = float(np.median([s for s in slacks if np.isfinite(s)]))
        record_property(f"median slack of {name}", round(medians[name], 2))
    assert medians["out"] < 4
    assert medians["partial_out"] < 20
    assert medians["partial_lse"] < 200


def test_equal_scores_and_integer_values_leave_no_bound(sampled: list[Comparison]) -> None:
    """Fault: an exactness rule that is lost: the coded profile must be compared for bit equality."""
    coded = [c for c in sampled if c.profile == "coded"]
    assert coded
    for comparison in coded:
        for name in ("partial_out", "partial_lse"):
            assert not comparison.bounds[name].any()
            assert not comparison.errors[name].any()


def _without_last(head: Head) -> Head:
    edges = tuple(min(e, len(head.k) - 1) for e in head.edges)
    return dataclasses.replace(head, k=head.k[:-1], v=head.v[:-1], edges=edges)


def _doubled_first(head: Head) -> Head:
    k, v = (np.concatenate([x[:1], x]) for x in (head.k, head.v))
    return dataclasses.replace(head, k=k, v=v, edges=(0, *(e + 1 for e in head.edges[1:])))


def _swapped_values(head: Head) -> Head:
    return dataclasses.replace(head, v=np.concatenate([head.v[1:2], head.v[:1], head.v[2:]]))


@pytest.mark.parametrize(
    ("fault", "profile"), [(_without_last, "coded"), (_doubled_first, "coded"), (_swapped_values, "normal")]
)
def test_a_faulty_kernel_exceeds_the_bound(
    sampled: list[Comparison], fault: Callable[[Head], Head], profile: str
) -> None:
    """Fault: bounds that no fault can exceed: the simulated kernel works on a band with one fault in it.

    Swapped values may well be equal in weight or weigh nothing; a position too few or too many never is.
    """
    suited = [c for c in sampled if c.profile == profile and len(c.head.k) > 2]
    assert len(suited) > 5
    seen = 0
    for comparison in suited:
        faulty = held_against_bounds(
            comparison.head, comparison.simulation, profile, computed=fault(comparison.head)
        )
        seen += any((faulty.errors[name] > faulty.bounds[name]).any() for name in QUANTITIES)
    assert seen >= len(suited) * (1.0 if profile == "coded" else 0.8)
