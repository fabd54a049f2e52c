"""Random attention problems with random ways to compute them, for soundness and tightness."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.contracts.attention.flash_plan import case_of, flash_contract
from tests.contracts.attention.simulated_kernel import CORES, Simulation
from verify.contract.formats import encode
from verify.contract.model import Case
from verify.contracts.attention.bounds import Numerics, head_bounds, stored_output
from verify.contracts.attention.profiles import ATTENTION_PROFILES
from verify.contracts.attention.reference import (
    Head,
    attention_heads,
    head_output,
    head_partials,
    invariant_partials,
)
from verify.oracle.sums import ScoreChains
from verify.oracle.tracked import Tracked


@dataclass(frozen=True)
class Comparison:
    """One simulated run against the oracle. errors and bounds by quantity, arrays of one shape."""

    profile: str
    simulation: Simulation
    head: Head
    errors: dict[str, np.ndarray]
    bounds: dict[str, np.ndarray]

    def slack(self, quantity: str) -> float:
        """Bound over error at the worst element; infinite when no element is off."""
        error, bound = self.errors[quantity], self.bounds[quantity]
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(error > 0, bound / error, np.inf).min())


def comparisons(seed: int, elements: int) -> Iterator[Comparison]:
    """Random cases until so many elements have been compared."""
    rng = np.random.default_rng(seed)
    seen = 0
    while seen < elements:
        comparison = _compare(rng)
        seen += sum(error.size for error in comparison.errors.values())
        yield comparison


def profiled_case(symbols: dict[str, object], profile_name: str, rng: np.random.Generator) -> Case:
    """A case with the data of a profile."""
    profile = next(p for p in ATTENTION_PROFILES if p.name == profile_name)
    case = case_of(symbols, profile_name)
    given = profile.generate(case, rng)
    arrays = {name: encode(case.dtype(flash_contract().buffer(name)), a) for name, a in given.items()}
    return dataclasses.replace(case, arrays=arrays)


def _compare(rng: np.random.Generator) -> Comparison:
    dim = int(rng.choice([64, 128, 256, 512], p=[0.4, 0.3, 0.2, 0.1]))
    group, count = int(rng.choice([1, 2, 4])), int(rng.integers(1, 260))
    scale = float(rng.choice([1.0, dim**-0.5, 2.0 * dim**-0.5], p=[0.1, 0.6, 0.3]))
    symbols = {
        "B": 1, "NH": group, "NKV": 1, "D": dim, "capacity": count + int(rng.integers(0, 5)),
        "len": (count,), "splits": 3, "scale": scale,
    }  # fmt: skip
    profile = ATTENTION_PROFILES[rng.integers(len(ATTENTION_PROFILES))].name
    head = next(attention_heads(profiled_case(symbols, profile, rng)))
    splits = int(rng.integers(1, 7))
    inner = sorted(rng.integers(0, count + 1, splits - 1).tolist())
    head = dataclasses.replace(head, edges=(0, *inner, count))

    blocks = [slice(d, d + 16) for d in range(0, dim, 16)]
    chains: list[ScoreChains] = [
        blocks,
        [blocks[0::2], blocks[1::2]],
        [[part[0::2], part[1::2]] for part in _halves(blocks)],
    ]
    simulation = Simulation(
        core=CORES[rng.integers(len(CORES))],
        tile=int(rng.choice([16, 32, 64])),
        chains=chains[rng.integers(len(chains))],
        scale=float(np.float32(scale)),
        fused=bool(rng.integers(2)),
        reverse_merge=bool(rng.integers(2)),
        weight_pair=bool(rng.integers(2)),
        rng=rng,
    )
    return held_against_bounds(head, simulation, profile)


def _halves(blocks: list[slice]) -> list[list[slice]]:
    return [blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]]


def held_against_bounds(
    head: Head, simulation: Simulation, profile: str, computed: Head | None = None
) -> Comparison:
    """Runs the simulation and sets it against the bounds of a model of the same numerics.

    computed: what the simulated kernel works on, if not the head itself: a faulty view of it.
    """
    tile, pair, scale = simulation.tile, simulation.weight_pair, simulation.scale
    numerics = Numerics(
        tile=tile,
        score_chains=simulation.chains,
        weight_loss=2.0**-17 if pair else 2.0**-8,
        output_steps=(2 if pair else 1) * tile // 16,
        sum_depth=1 + tile // 8 + 2,
        merge_depth=len(head.edges),
    )
    out, o, m, weight = simulation.run(computed or head)
    bounds = head_bounds(head, scale, numerics)
    reference = stored_output(Tracked(head_output(head, scale), bounds.out))
    true_out, true_lse = invariant_partials(*head_partials(head, scale), scale)
    seen = tuple(x.astype(np.float64) for x in (o, m, weight))
    seen_out, seen_lse = invariant_partials(seen[0], seen[1], seen[2], scale)
    pairs = {
        "out": (out, reference.value, reference.bound),
        "partial_out": (seen_out, true_out, bounds.partial_out),
        "partial_lse": (seen_lse, true_lse, bounds.partial_lse),
    }
    errors = {name: _difference(seen, true) for name, (seen, true, _) in pairs.items()}
    return Comparison(profile, simulation, head, errors, {n: bound for n, (_, _, bound) in pairs.items()})


def _difference(seen: np.ndarray, true: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        error = np.where(seen == true, 0.0, np.abs(seen - true))
    return np.where(np.isnan(error), np.inf, error)
