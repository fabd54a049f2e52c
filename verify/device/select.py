"""Selects the device of a command: ``auto`` is the GPU if there is one, else the CPU device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from verify.device.cpu import CpuDevice
from verify.device.gpu import GpuDevice
from verify.device.interface import Device

CHOICES = ("auto", "gpu", "cpu")

_DEVICES: Mapping[str, Callable[[], Device]] = {"gpu": GpuDevice, "cpu": CpuDevice}


@dataclass(frozen=True)
class NoDevice:
    """No usable device. reason: one line that says what is missing, for each requested device."""

    reason: str


def devices() -> Mapping[str, Device]:
    """Every device that this version supports, usable or not, by name."""
    return {name: make() for name, make in _DEVICES.items()}


def select_device(choice: str) -> Device | NoDevice:
    """The device of that name, or the first usable one for ``auto``. Raises ValueError otherwise."""
    if choice not in CHOICES:
        raise ValueError(f"--device {choice}: is not one of {', '.join(CHOICES)}")
    reasons = []
    for name in _DEVICES if choice == "auto" else (choice,):
        device = _DEVICES[name]()
        answer = device.available()
        if answer.ok:
            return device
        reasons.append(f"{name}: {answer.reason}")
    return NoDevice("; ".join(reasons))
