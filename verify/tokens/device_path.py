"""The kernel path: every operation runs on a device, all positions of one operation in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from verify.case.case import Case
from verify.case.run import Run
from verify.check.judge import observed_quantities, outside_bound
from verify.check.subject import Subject
from verify.contract import Contract
from verify.device.interface import Device
from verify.harness.build import Build, build_harness
from verify.harness.plan import query_plans
from verify.oracle.expectation import expect
from verify.tokens.operations import RESULT, CaseBuilder, Operation, Plans

_GUESSED_SM_COUNT = 132

Progress = Callable[[str], None]


class PathError(RuntimeError):
    """An operation that did not run to its end; the message names place and reason."""


@dataclass(frozen=True)
class Deviation:
    """An element that left its bound, given its own path's inputs."""

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
    """The harness of each kernel, for the device's architecture. Raises BuildError."""
    wanted = architecture or (device.info().architecture if device is not None else None)
    return {name: build_harness(contract, wanted, progress) for name, contract in contracts.items()}


def launcher_plans(builds: Mapping[str, Build], device: Device | None) -> Plans:
    """Plans as the launchers give them for this device."""
    sm_count = device.info().sm_count if device is not None else _GUESSED_SM_COUNT

    def plans(contract: Contract, symbols: Mapping[str, Any]) -> Mapping[str, int]:
        (plan,) = query_plans(builds[contract.name], contract, [symbols], sm_count)
        if not plan:
            raise PathError(f"{contract.name}: its launcher refuses {dict(symbols)}")
        return plan

    return plans


@dataclass
class KernelPath:
    """Executes operations on a device and checks each result against the bound for its own inputs.

    deviations: in the order in which they happened, positions before elements.
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
        """One row of results a position. Raises PathError when a run did not end well."""
        self.progress(f"{operation.place}, {len(operation.positions)} steps")
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
            found = deviation(operation, position, run.case, seen)
            self.deviations += [found] if found else []
            rows.append(seen[0])
        return np.stack(rows)


def deviation(operation: Operation, position: int, case: Case, seen: np.ndarray) -> Deviation | None:
    """The first element of a result ``[1, n]`` outside the bound for the inputs of its own path, if any."""
    quantity = expect(case)[RESULT[operation.kernel]]
    wrong = np.argwhere(outside_bound(quantity, seen))
    if not len(wrong):
        return None
    index = tuple(int(i) for i in wrong[0])
    return Deviation(
        position,
        operation.place,
        index[-1],
        float(seen[index]),
        float(quantity.value[index]),
        float(quantity.bound[index]),
    )
