"""Builds the matvec kernels, and the read-only stream beside them, and calls their C ABIs on tensors."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import torch

BENCH = Path(__file__).resolve().parent
CUDA = BENCH.parent / "cuda"
SCALE_FORMATS = {"e4m3": 0, "e8m0": 1, "bf16": 2}
OUTPUT_TYPES = {torch.bfloat16: 0, torch.float32: 1}


class Fp4Args(ctypes.Structure):
    """`fp4_matvec_args`, field by field."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("weights", "scales", "tensor_scale", "x", "y")]
        + [(name, ctypes.c_int64) for name in ("n", "k", "weight_pitch", "scale_pitch", "x_pitch", "y_pitch")]
        + [(name, ctypes.c_int32) for name in ("b", "group", "scale_format", "output_type", "rows_per_block")]
        + [("constant_weights", ctypes.c_int32)]
    )


class Fp8Args(ctypes.Structure):
    """`fp8_matvec_args`, field by field."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("weights", "scales", "x", "y")]
        + [(name, ctypes.c_int64) for name in ("n", "k", "weight_pitch", "x_pitch", "y_pitch")]
        + [(name, ctypes.c_int32) for name in ("b", "output_type", "rows_per_block")]
    )


def start_build(source: Path, library: Path, nvcc: str = "nvcc") -> subprocess.Popen[str]:
    """Starts nvcc; the library may be loaded once the process has ended with status 0."""
    command = [nvcc, "-std=c++17", "-O3", "-lineinfo", "-arch=native", "-shared", "-Xcompiler", "-fPIC"]
    command += ["-o", str(library), str(source)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Matvec:
    """One built kernel."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._launch = getattr(ctypes.CDLL(str(path)), f"{name}_launch")
        self._launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def launch(self, args: Fp4Args | Fp8Args) -> None:
        """Enqueues the kernel on the current stream. Raises RuntimeError on any error it returns."""
        error = self._launch(ctypes.addressof(args), torch.cuda.current_stream().cuda_stream)
        if error:
            raise RuntimeError(f"{self.name}_launch: cudaError {error}")


class Stream:
    """The built read-only stream of bench/stream.cu."""

    def __init__(self, path: Path) -> None:
        self._launch = ctypes.CDLL(str(path)).stream_launch
        self._launch.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
        self._scratch = torch.zeros(4, dtype=torch.uint8, device="cuda")

    def launch(self, data: torch.Tensor) -> None:
        """Enqueues the reading of a contiguous tensor on the current stream. Raises RuntimeError."""
        stream = torch.cuda.current_stream().cuda_stream
        error = self._launch(data.data_ptr(), data.nbytes, self._scratch.data_ptr(), stream)
        if error:
            raise RuntimeError(f"stream_launch: cudaError {error}")


def fp4_args(
    weights: torch.Tensor,
    scales: torch.Tensor,
    tensor_scale: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    group: int,
    scale_format: str,
    rows_per_block: int = 0,
    constant_weights: bool = True,
) -> Fp4Args:
    """Arguments for packed weights [N, K/2] (uint8), scales [N, K/group], x [B, K] and y [B, N]."""
    args = Fp4Args()
    args.weights, args.scales, args.tensor_scale = (t.data_ptr() for t in (weights, scales, tensor_scale))
    args.x, args.y = x.data_ptr(), y.data_ptr()
    args.n, args.k, args.b = weights.shape[0], x.shape[1], x.shape[0]
    args.weight_pitch, args.scale_pitch = weights.stride(0), scales.stride(0)
    args.x_pitch, args.y_pitch = x.stride(0), y.stride(0)
    args.group, args.scale_format = group, SCALE_FORMATS[scale_format]
    args.output_type, args.rows_per_block = OUTPUT_TYPES[y.dtype], rows_per_block
    args.constant_weights = constant_weights
    return args


def fp8_args(
    weights: torch.Tensor, scales: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *, rows_per_block: int = 0
) -> Fp8Args:
    """Arguments for E4M3 weights [N, K] (uint8), scales [N] (fp32), x [B, K] and y [B, N]."""
    args = Fp8Args()
    args.weights, args.scales, args.x, args.y = (t.data_ptr() for t in (weights, scales, x, y))
    args.n, args.k, args.b = weights.shape[0], x.shape[1], x.shape[0]
    args.weight_pitch, args.x_pitch, args.y_pitch = weights.stride(0), x.stride(0), y.stride(0)
    args.output_type, args.rows_per_block = OUTPUT_TYPES[y.dtype], rows_per_block
    return args
