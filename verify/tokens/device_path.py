"""The kernel path: every operation runs on a device, all positions of one operation in one process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from verify.check.judge import observed_quantities, outside_bound
from verify.check.subject import Subject
from verify.contract.model import Contract
from verify.device.interface import Device
from verify.harness.build import Build, build_all
from verify.harness.plan import query_plans
from verify.oracle.expectation import expect
from verify.system.progress import Progress
from verify.tokens.operations import RESULT, CaseBuilder, Operation, Plans
from verify.wire.run import Run

_GUESSED_SM_COUNT = 132

ROWS_AT_ONCE = 8
"""Positions whose bounds are computed together: more would not fit into the processor's cache."""


class PathError(RuntimeError):
    """An operation did not complete; the message names place and reason."""


@dataclass(frozen=True)
class Deviation:
    """An element outside its bound for the inputs of its own path."""

    position: int
    place: str
    element: int
    seen: float
    reference: float
    bound: float

    def __str__(self) -> str:
        return (
            f"step {self.position}, {self.place}: element {self.element} is {self.seen:.9g}, "
            f"{self.reference:.9g} within {self.bound:.3g} was promised"
        )


def build_kernels(
    contracts: Mapping[str, Contract], device: Device | None, architecture: str | None, progress: Progress
) -> dict[str, Build]:
    """Build the harness of each kernel for the device's architecture, concurrently. Raises BuildError."""
    wanted = architecture or (device.info().architecture if device is not None else None)
    builds = build_all(list(contracts.values()), wanted, progress, jobs=len(os.sched_getaffinity(0)))
    return dict(zip(contracts, builds, strict=True))


def launcher_plans(builds: Mapping[str, Build], device: Device | None) -> Plans:
    """The launchers' plans for this device."""
    sm_count = device.info().sm_count if device is not None else _GUESSED_SM_COUNT

    def plans(contract: Contract, symbols: Mapping[str, Any]) -> Mapping[str, int]:
        (plan,) = query_plans(builds[contract.name], contract, [symbols], sm_count)
        if not plan:
            raise PathError(f"{contract.name}: its launcher rejects {dict(symbols)}")
        return plan

    return plans


@dataclass
class KernelPath:
    """Executes operations on a device and compares each result with the bound for its inputs.

    deviations: in execution order, positions before elements.
    """

    builder: CaseBuilder
    builds: Mapping[str, Build]
    device: Device
    folder: Path
    progress: Progress = lambda _: None
    deviations: list[Deviation] = field(default_factory=list)
    elements: int = 0
    launches: int = 0
    calls: int = 0

    def __call__(self, operation: Operation) -> np.ndarray:
        """One row of results per position. Raises PathError if a run failed."""
        self.progress(f"tokens: {operation.place}, {len(operation.positions)} steps")
        self.calls += 1
        contract = self.builder.contracts[operation.kernel]
        subject = Subject(
            contract,
            (),
            {},
            self.builds[operation.kernel].binary,
            self.device,
            self.folder / f"{self.calls}",
        )
        cases = self.builder.cases(operation)
        runs = [Run(case.profile, case) for case in cases]
        ran = subject.execute(runs)
        rows = []
        for position, run in zip(operation.positions, runs, strict=True):
            one = ran[run.id]
            if not one.done or one.output is None:
                why = one.result.error or str(one.result.status)
                raise PathError(f"step {position}, {operation.place}: did not run: {why}")
            seen = observed_quantities(run.case, one.output)[RESULT[operation.kernel]]
            self.launches += one.output.kernels
            self.elements += seen.size
            rows.append(seen[0])
        results = np.stack(rows)
        self.deviations += deviations(operation, self.builder, results)
        return results


def deviations(operation: Operation, builder: CaseBuilder, results: np.ndarray) -> list[Deviation]:
    """The first element outside its bound of each row of ``results`` ``[positions, n]``.

    The bounds are those for the operation's own inputs.
    """
    found = []
    for first in range(0, len(results), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        part = replace(
            operation,
            symbols=operation.symbols[rows],
            arrays=operation.arrays[rows],
            positions=operation.positions[rows],
        )
        quantity = expect(builder.joint(part))[RESULT[operation.kernel]]
        wrong = outside_bound(quantity, results[rows])
        for row in map(int, np.flatnonzero(wrong.any(1))):
            at = row, int(wrong[row].argmax())
            found.append(
                Deviation(
                    part.positions[row],
                    operation.place,
                    at[1],
                    float(results[rows][at]),
                    float(quantity.value[at]),
                    float(quantity.bound[at]),
                )
            )
    return found
