"""Device selection: the GPU where there is one; what is missing is said in one line, and is never a pass."""

from __future__ import annotations

import pytest

from verify.device import select
from verify.device.interface import Availability
from verify.device.select import NoDevice, select_device


class Stub:
    """A device that is there, or says why not."""

    def __init__(self, name: str, reason: str = "") -> None:
        self.name, self.reason = name, reason

    def available(self) -> Availability:
        return Availability(not self.reason, self.reason)


def devices(monkeypatch: pytest.MonkeyPatch, gpu: str = "", cpu: str = "") -> None:
    made = {"gpu": lambda: Stub("gpu", gpu), "cpu": lambda: Stub("cpu", cpu)}
    monkeypatch.setattr(select, "_DEVICES", made)


def test_auto_takes_the_gpu_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: the slower device is taken although a GPU is there."""
    devices(monkeypatch)
    assert select_device("auto").name == "gpu"  # type: ignore[union-attr]


def test_auto_falls_back_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a machine without a GPU verifies nothing although it could."""
    devices(monkeypatch, gpu="no driver")
    assert select_device("auto").name == "cpu"  # type: ignore[union-attr]


def test_a_named_device_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: --device gpu quietly runs on the CPU device."""
    devices(monkeypatch, gpu="no driver")
    assert select_device("gpu") == NoDevice("gpu: no driver")


def test_no_usable_device_names_every_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: only one device's reason is reported."""
    devices(monkeypatch, gpu="no driver", cpu="no g++")
    assert select_device("auto") == NoDevice("gpu: no driver; cpu: no g++")


def test_another_name_is_a_usage_error() -> None:
    """Fault: a misspelt device means auto."""
    with pytest.raises(ValueError, match="--device tpu: is not one of auto, gpu, cpu"):
        select_device("tpu")
