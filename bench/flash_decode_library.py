"""Builds cuda/flash_decode.cu as a shared library and calls its C ABI on torch tensors."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path

import torch

SOURCE = Path(__file__).resolve().parent.parent / "cuda" / "flash_decode.cu"


class Args(ctypes.Structure):
    """`flash_decode_args`, field by field."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("q", "k", "v", "out", "lengths", "workspace")]
        + [("workspace_bytes", ctypes.c_size_t)]
        + [(name, ctypes.c_int) for name in ("batch", "num_heads", "num_kv_heads", "head_dim")]
        + [(name, ctypes.c_longlong) for name in ("capacity", "window", "q_stride_b", "out_stride_b")]
        + [(f"{cache}_stride_{axis}", ctypes.c_longlong) for cache in "kv" for axis in "bhs"]
        + [("scale", ctypes.c_float), ("num_splits", ctypes.c_int)]
    )


class Plan(ctypes.Structure):
    """`flash_decode_plan_result`, field by field."""

    _fields_ = (
        [(name, ctypes.c_int) for name in ("tile", "num_splits", "boundary_rule", "heads_per_block")]
        + [(name, ctypes.c_size_t) for name in ("workspace_bytes", "o_offset", "m_offset", "l_offset")]
        + [("max_live", ctypes.c_int), ("shared_bytes", ctypes.c_int)]
        + [("split_blocks", ctypes.c_longlong), ("merge_blocks", ctypes.c_longlong)]
    )


@dataclass(frozen=True)
class Partials:
    """Views of the workspace: o [B, NH, S, D], m and l [B, NH, S], all fp32."""

    o: torch.Tensor
    m: torch.Tensor
    l: torch.Tensor  # noqa: E741, the field's usual name


def start_build(source: Path, library: Path, nvcc: str = "nvcc") -> subprocess.Popen[str]:
    """Starts nvcc; `Library(path)` may be made once the process has ended with status 0."""
    command = [nvcc, "-std=c++17", "-O3", "-lineinfo", "-arch=native", "-shared", "-Xcompiler", "-fPIC"]
    command += ["-o", str(library), str(source)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Library:
    """One built copy of the kernel."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        self._plan = library.flash_decode_plan
        self._plan.argtypes = [ctypes.POINTER(Args), ctypes.c_int, ctypes.POINTER(Plan)]
        self._launch = library.flash_decode_launch
        self._launch.argtypes = [ctypes.POINTER(Args), ctypes.c_void_p]

    def arguments(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        lengths: torch.Tensor,
        out: torch.Tensor,
        *,
        window: int = 0,
        scale: float,
        num_splits: int = 0,
    ) -> Args:
        """Arguments without a workspace; q and out are [B, NH, D], k and v [B, NKV, capacity, D]."""
        args = Args()
        args.q, args.k, args.v, args.out = q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr()
        args.lengths = lengths.data_ptr()
        args.batch, args.num_heads, args.head_dim = q.shape
        args.num_kv_heads, args.capacity = k.shape[1], k.shape[2]
        args.window = window
        args.q_stride_b, args.out_stride_b = q.stride(0), out.stride(0)
        args.k_stride_b, args.k_stride_h, args.k_stride_s = k.stride()[:3]
        args.v_stride_b, args.v_stride_h, args.v_stride_s = v.stride()[:3]
        args.scale, args.num_splits = scale, num_splits
        return args

    def plan(self, args: Args) -> Plan:
        """The plan for the current device. Raises RuntimeError if the kernel rejects the arguments."""
        plan = Plan()
        sm_count = torch.cuda.get_device_properties().multi_processor_count
        error = self._plan(ctypes.byref(args), sm_count, ctypes.byref(plan))
        if error:
            raise RuntimeError(f"flash_decode_plan: cudaError {error}")
        return plan

    def launch(self, args: Args, workspace: torch.Tensor) -> None:
        """Enqueue the kernel on the current stream. Raises RuntimeError for any error that it returns."""
        args.workspace, args.workspace_bytes = workspace.data_ptr(), workspace.nbytes
        error = self._launch(ctypes.byref(args), torch.cuda.current_stream().cuda_stream)
        if error:
            raise RuntimeError(f"flash_decode_launch: cudaError {error}")


def partials(args: Args, plan: Plan, workspace: torch.Tensor) -> Partials:
    """The partials of the last launch; `workspace` is a uint8 tensor."""
    states = (args.batch, args.num_heads, plan.num_splits)
    count = states[0] * states[1] * states[2]

    def view(offset: int, elements: int, shape: tuple[int, ...]) -> torch.Tensor:
        return workspace[offset : offset + 4 * elements].view(torch.float32).view(shape)

    return Partials(
        view(plan.o_offset, count * args.head_dim, (*states, args.head_dim)),
        view(plan.m_offset, count, states),
        view(plan.l_offset, count, states),
    )
