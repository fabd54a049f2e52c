"""Times flash decoding against PyTorch's attention and a cuBLAS pipeline, on one GPU, in one run.

    python3 bench/flash_decode_bench.py [--splits auto,66,132] [--source FILE.cu]... [--only TEXT]

Every figure is microseconds per call, the median over replays of a CUDA graph with many calls on
different parts of a cache larger than the L2. Each build is first checked against FP64. Needs torch and nvcc.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from flash_decode_check import failures
from flash_decode_library import SOURCE, Library, start_build
from torch.nn.attention import SDPBackend, sdpa_kernel

ROTATED_BYTES = 400_000_000  # several times the L2 of any present card
GRAPH_SECONDS = 0.004
STREAM_RATE = 4.42e12  # bytes a second of a read-only stream, recorded on an H200
REPLAYS = 15


@dataclass(frozen=True)
class Shape:
    """One decode step of one layer, with batch 1 by default."""

    name: str
    num_heads: int
    num_kv_heads: int
    head_dim: int
    capacity: int
    live: int
    window: int = 0
    batch: int = 1
    ggml: float | None = None  # recorded on an H200, microseconds
    flashinfer: float | None = None

    @property
    def live_bytes(self) -> int:
        return 2 * 2 * self.batch * self.num_kv_heads * self.live * self.head_dim


SHAPES = (
    Shape("MQA 16:1 D512 live 128", 16, 1, 512, 32768, 128, ggml=11.1),
    Shape("MQA 16:1 D512 live 4096", 16, 1, 512, 32768, 4096, ggml=24.4),
    Shape("MQA 16:1 D512 live 32768", 16, 1, 512, 32768, 32768, ggml=59.9),
    Shape("GQA 16:8 D256 window 1024", 16, 8, 256, 1024, 1024, 1024, ggml=10.0, flashinfer=23.4),
    Shape("GQA 16:8 D256 live 32768", 16, 8, 256, 32768, 32768, ggml=88.8, flashinfer=75.0),
    Shape("GQA 32:8 D128 live 4096", 32, 8, 128, 32768, 4096, ggml=12.7, flashinfer=16.0),
    Shape("GQA 32:8 D128 live 32768", 32, 8, 128, 32768, 32768, ggml=61.4, flashinfer=54.2),
    Shape("MHA 32:32 D128 live 4096", 32, 32, 128, 4096, 4096),
    Shape("GQA 32:8 D64 live 16384", 32, 8, 64, 16384, 16384),
    Shape("GQA 32:8 D128 live 4096 batch 32", 32, 8, 128, 4096, 4096, batch=32),
)


class Caches:
    """K and V of several calls: windows into one allocation that start at different rows."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.calls = max(2, min(512, -(-ROTATED_BYTES // shape.live_bytes)))
        rows = shape.capacity + (self.calls - 1) * shape.live
        size = (shape.batch, shape.num_kv_heads, rows, shape.head_dim)
        self.k = torch.randn(size, device="cuda", dtype=torch.bfloat16)
        self.v = torch.randn(size, device="cuda", dtype=torch.bfloat16)
        query = (shape.batch, shape.num_heads, shape.head_dim)
        self.q = torch.randn(query, device="cuda", dtype=torch.bfloat16)
        self.lengths = torch.full((shape.batch,), shape.live, device="cuda", dtype=torch.int32)

    def part(self, index: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """K and V [B, NKV, rows, D] of one call."""
        first = index % self.calls * self.shape.live
        return self.k[:, :, first : first + rows], self.v[:, :, first : first + rows]


Call = Callable[[int], object]


def microseconds(call: Call, calls: int) -> float:
    """Median time per call, over replays of a graph that holds `call(0)`, `call(1)`, ..."""
    for index in range(3):
        call(index)
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    call(3)
    stop.record()
    torch.cuda.synchronize()
    calls = max(2, min(calls, int(GRAPH_SECONDS * 1e3 / max(start.elapsed_time(stop), 0.005))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(calls):
            call(index)
    times = []
    for replay in range(REPLAYS + 3):
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        if replay >= 3:
            times.append(start.elapsed_time(stop) * 1e3 / calls)
    return statistics.median(times)


def ours(library: Library, caches: Caches, num_splits: int) -> Call:
    shape = caches.shape
    out = torch.empty_like(caches.q)
    launches = []
    for index in range(caches.calls):
        k, v = caches.part(index, shape.capacity)
        launches.append(
            library.arguments(
                caches.q,
                k,
                v,
                caches.lengths,
                out,
                window=shape.window,
                scale=shape.head_dim**-0.5,
                num_splits=num_splits,
            )
        )
    workspace = torch.empty(library.plan(launches[0]).workspace_bytes, dtype=torch.uint8, device="cuda")
    return lambda index: library.launch(launches[index % len(launches)], workspace)


def sdpa(caches: Caches, backend: SDPBackend) -> Call:
    shape = caches.shape
    q = caches.q[:, :, None]

    def call(index: int) -> torch.Tensor:
        k, v = caches.part(index, shape.live)
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, enable_gqa=shape.num_heads != shape.num_kv_heads
            )

    return call


def pipeline(caches: Caches, rows: int) -> Call:
    """Q K^T, softmax and P V as three library calls over the first `rows` slots."""
    shape = caches.shape
    group = shape.num_heads // shape.num_kv_heads
    q = caches.q.view(shape.batch, shape.num_kv_heads, group, shape.head_dim) * shape.head_dim**-0.5

    def call(index: int) -> torch.Tensor:
        k, v = caches.part(index, rows)
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v

    return call


def attempt(call: Call, calls: int) -> float | None:
    """The time, or None if PyTorch has no kernel for the shape."""
    try:
        return microseconds(call, calls)
    except (RuntimeError, torch.OutOfMemoryError):
        torch.cuda.synchronize()
        return None


def rivals(caches: Caches) -> dict[str, float]:
    shape = caches.shape
    calls: dict[str, Call] = {
        "cuBLAS whole": pipeline(caches, shape.capacity),
        "cuBLAS live": pipeline(caches, shape.live),
        "SDPA flash": sdpa(caches, SDPBackend.FLASH_ATTENTION),
        "SDPA cuDNN": sdpa(caches, SDPBackend.CUDNN_ATTENTION),
        "SDPA efficient": sdpa(caches, SDPBackend.EFFICIENT_ATTENTION),
        "SDPA math": sdpa(caches, SDPBackend.MATH),
    }
    times = {name: attempt(call, caches.calls) for name, call in calls.items()}
    recorded = {"ggml*": shape.ggml, "FlashInfer*": shape.flashinfer}
    return {name: time for name, time in (times | recorded).items() if time is not None}


def build(sources: list[Path], folder: Path) -> dict[str, Library]:
    """Build all sources concurrently. Raises SystemExit with nvcc's output if one does not build."""
    running = [(source, folder / f"{source.stem}.so") for source in sources]
    processes = [start_build(source, library) for source, library in running]
    for (source, _), process in zip(running, processes, strict=True):
        output, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"{source} does not build:\n{output}")
    return {source.stem: Library(library) for source, library in running}


def main() -> int:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--source", type=Path, action="append", help="a variant to time (default: cuda/)")
    parser.add_argument("--splits", default="auto", help="split counts to try, e.g. auto,33,66")
    parser.add_argument("--only", default="", help="only shapes whose name contains this text")
    parser.add_argument("--no-rivals", action="store_true")
    options = parser.parse_args()
    splits = [0 if text == "auto" else int(text) for text in options.splits.split(",")]
    warnings.filterwarnings("ignore", category=UserWarning)  # PyTorch says at length which kernels it lacks

    properties = torch.cuda.get_device_properties()
    print(f"{properties.name}, torch {torch.__version__}; * recorded on an H200 in 2026, not run here")
    with tempfile.TemporaryDirectory() as folder:
        libraries = build(options.source or [SOURCE], Path(folder))
        wrong = {name: failures(library) for name, library in libraries.items()}
        for name, lines in wrong.items():
            print(f"{name}: {len(lines)} failures against FP64", *lines[:10], sep="\n  ")
        summary = []
        for shape in SHAPES:
            if options.only not in shape.name:
                continue
            caches = Caches(shape)
            print(f"\n{shape.name}: {shape.live_bytes / 1e6:.2f} MB")
            own = {}
            for (name, library), count in ((item, count) for item in libraries.items() for count in splits):
                time = microseconds(ours(library, caches, count), caches.calls)
                own[f"{name} splits {count or 'auto'}"] = time
                rate = shape.live_bytes / time / 1e6
                print(f"  {time:9.2f} us  {rate:5.2f} TB/s  {name} splits {count or 'auto'}")
            first, best = next(iter(own.values())), min(own, key=own.__getitem__)
            others = {} if options.no_rivals else rivals(caches)
            for name, time in others.items():
                print(f"  {time:9.2f} us  {time / first:5.2f} x     {name}")
            rival = min(others, key=others.__getitem__, default="none")
            ratio = others[rival] / first if others else float("nan")
            stream = shape.live_bytes / STREAM_RATE * 1e6
            summary.append(
                f"{shape.name:34} {first:8.2f} us {stream / first:5.0%} of stream  "
                f"{ratio:5.2f} x against {rival}; best variant {own[best]:.2f} us: {best}"
            )
            del caches
            torch.cuda.empty_cache()
        print("", *summary, sep="\n")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
