"""Probes this machine's NVIDIA driver and GPUs through the driver library, in a separate process.

``python -m verify.device.cuda_probe`` prints one JSON object. A probe in the caller's process would
initialise the driver there, which does not survive a fork, and would hang the caller if the driver hangs.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

PROBE_SECONDS = 60.0

_SM_COUNT, _MAJOR, _MINOR = 16, 75, 76
"""CUdevice_attribute values of cuda.h: MULTIPROCESSOR_COUNT, COMPUTE_CAPABILITY_MAJOR and _MINOR."""


@dataclass(frozen=True)
class Gpu:
    """One visible GPU. index: the ordinal among the visible ones. uuid: as for CUDA_VISIBLE_DEVICES.

    free_bytes: memory that an allocation could get when the probe ran.
    """

    index: int
    uuid: str
    name: str
    architecture: str
    sm_count: int
    free_bytes: int


@dataclass(frozen=True)
class Probe:
    """The driver's answer. reason: one line that says why there are no ``gpus``, else empty.

    driver: its release ("580.95.05"), or its CUDA version where the release is not readable.
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    cuda: str = ""
    reason: str = ""


def probe(timeout: float = PROBE_SECONDS) -> Probe:
    """Probe in a child process. Never raises: every failure is reported as ``reason``."""
    command = [sys.executable, "-m", "verify.device.cuda_probe"]
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        answer = subprocess.run(command, capture_output=True, timeout=timeout, env=environment, check=False)
        found = json.loads(answer.stdout)
    except subprocess.TimeoutExpired:
        return Probe(reason=f"the NVIDIA driver did not answer within {timeout:g} s; restart the machine")
    except (OSError, ValueError):
        return Probe(reason="the probe of the NVIDIA driver crashed; nvidia-smi may show why")
    return Probe(tuple(Gpu(**gpu) for gpu in found.pop("gpus")), **found)


def ask_driver() -> Probe:
    """Query the driver library in this process."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Probe(reason="no NVIDIA driver: libcuda.so.1 is not on this machine")
    code = driver.cuInit(0)
    if code != 0:
        return Probe(driver=_release(), reason=_initialisation_failure(code))
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    gpus = tuple(_describe(driver, index) for index in range(count.value))
    reason = "" if gpus else "the NVIDIA driver shows no GPU; check CUDA_VISIBLE_DEVICES"
    return Probe(gpus, _release() or cuda, cuda, reason)


def _describe(driver: ctypes.CDLL, index: int) -> Gpu:
    """One GPU's properties. A context is needed only for the free memory, and released at once."""
    device = ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), index)
    name = ctypes.create_string_buffer(256)
    driver.cuDeviceGetName(name, len(name), device)
    uuid = (ctypes.c_ubyte * 16)()
    driver.cuDeviceGetUuid_v2(ctypes.byref(uuid), device)

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), which, device)
        return value.value

    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    context = ctypes.c_void_p()
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0:
        driver.cuCtxPushCurrent_v2(context)
        driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        driver.cuDevicePrimaryCtxRelease_v2(device)
    return Gpu(
        index,
        _spell_uuid(bytes(uuid)),
        name.value.decode(errors="replace"),
        f"sm_{attribute(_MAJOR)}{attribute(_MINOR)}",
        attribute(_SM_COUNT),
        free.value,
    )


def _spell_uuid(raw: bytes) -> str:
    """``GPU-8-4-4-4-12`` hexadecimal digits, the format of CUDA_VISIBLE_DEVICES."""
    digits = raw.hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _release() -> str:
    """The kernel module's release, such as "580.95.05"; empty if not readable."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return found[1] if found else ""


def _initialisation_failure(code: int) -> str:
    reasons = {
        100: "the NVIDIA driver finds no GPU (CUDA_ERROR_NO_DEVICE)",
        803: "the NVIDIA driver library does not match the kernel module (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)",
        802: "the NVIDIA system is not ready (CUDA_ERROR_SYSTEM_NOT_READY); start its fabric manager",
    }
    return reasons.get(code, f"the NVIDIA driver does not initialise: cuInit returned {code}")


if __name__ == "__main__":
    print(json.dumps(asdict(ask_driver())))
