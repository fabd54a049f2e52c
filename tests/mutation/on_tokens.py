"""Token parity with a planted kernel in the place of a right one, everywhere or in one layer only."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from verify.contract.discovery import find_contracts
from verify.contract.model import Contract
from verify.device.interface import Device
from verify.harness.build import Build, build_harness
from verify.mutation.catalogue import catalogue_of
from verify.mutation.planting import with_source
from verify.tokens.device_path import KernelPath, launcher_plans
from verify.tokens.model import Model, Shape, build_model
from verify.tokens.operations import KERNELS, CaseBuilder, Executor, Operation, Oracle, Plans
from verify.tokens.parity import Decoded, TokenReport, compare, decode_greedily


def planted_contract(kernel: str, name: str) -> Contract:
    """The contract of a kernel with one of its planted faults."""
    (contract,) = find_contracts([kernel])
    return with_source(contract, next(m.source for m in catalogue_of(contract) if m.name == name))


def build(contract: Contract, device: Device) -> Build:
    """Its harness, as the trials of planted faults build it."""
    machine_code = device.name != "cpu"
    return build_harness(contract, device.info().architecture, lambda _: None, machine_code=machine_code)


def right_builds(device: Device) -> dict[str, Build]:
    """The harnesses of the decoder's kernels as they are."""
    return {name: build(find_contracts([name])[0], device) for name in KERNELS}


def tokens_with(
    faulty: Contract, device: Device, shape: Shape, scratch: Path, layer: int | None = None
) -> TokenReport:
    """Token parity in which ``faulty`` stands for its kernel: in one layer, or wherever it is called."""
    builds = right_builds(device)
    plans = launcher_plans(builds, device)
    model, decoded = _decoded(shape, plans)
    right = KernelPath(CaseBuilder(plans), builds, device, scratch / "right")
    planted = KernelPath(
        right.builder, {**builds, faulty.name: build(faulty, device)}, device, scratch / "planted",
        deviations=right.deviations,
    )  # fmt: skip

    def path(operation: Operation) -> Executor:
        return planted if layer is None or operation.layer == layer else right

    return compare(model, decoded, lambda operation: path(operation)(operation), right.deviations)


@cache
def _model(shape: Shape) -> Model:
    return build_model(shape)


_KNOWN: dict[Shape, Decoded] = {}


def _decoded(shape: Shape, plans: Plans) -> tuple[Model, Decoded]:
    """The oracle's decoding, which no planted fault changes."""
    model = _model(shape)
    if shape not in _KNOWN:
        oracle, unrounded = (Oracle(CaseBuilder(plans, stored)) for stored in ("bf16", "f64"))
        _KNOWN[shape] = decode_greedily(model, oracle, unrounded)
    return model, _KNOWN[shape]
