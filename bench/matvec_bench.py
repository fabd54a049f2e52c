"""Times the FP4 and FP8 matvec kernels against a bf16 cuBLAS matvec, on one GPU, in one run.

    python3 bench/matvec_bench.py [--only TEXT] [--source FILE.cu]...

Every figure is microseconds per call, the median over replays of a CUDA graph with many calls on
different copies of the weights, together larger than the L2. All kernels are first checked against FP64.
"weights wait": without constant_weights, which lets the kernel for one vector copy weights before the kernel
ahead of it has ended.
--source adds variants of the FP4 kernel with its ABI. Needs torch and nvcc.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from flash_decode_bench import ROTATED_BYTES, attempt, microseconds
from matvec_check import fp4_failures, fp8_failures, random_scales
from matvec_library import BENCH, CUDA, Matvec, Stream, fp4_args, fp8_args, start_build

Call = Callable[[int], object]


@dataclass(frozen=True)
class Shape:
    """One projection. ggml: its time for NVFP4 and MXFP4, recorded on an H200, microseconds."""

    n: int
    k: int
    b: int = 1
    nvfp4: float | None = None
    mxfp4: float | None = None

    @property
    def name(self) -> str:
        return f"{self.n}x{self.k} B {self.b}"


SHAPES = (
    Shape(3840, 3840, 1, 6.9, 8.3),
    Shape(15360, 3840, 1, 17.4, 23.2),
    Shape(3840, 15360, 1, 17.1, 21.8),
    Shape(30720, 3840, 1, 31.5, 42.8),
    Shape(262144, 3840, 1, 226.8, 334.1),
    *(Shape(15360, 3840, b) for b in (2, 4, 8)),
    *(Shape(3840, 15360, b) for b in (2, 8)),
)


def copies(bytes_each: int) -> int:
    """How many copies of the weights a graph rotates through."""
    return max(2, min(256, -(-ROTATED_BYTES // bytes_each)))


def fp4_call(
    kernel: Matvec, shape: Shape, scale_format: str, group: int, *, constant: bool = True
) -> tuple[Call, int, int]:
    """The call, the number of copies and the bytes of one. constant: the kernel may copy weights early."""
    size = shape.n * shape.k // 2 + shape.n * shape.k // group
    count = copies(size)
    x = torch.randn(shape.b, shape.k, device="cuda").to(torch.bfloat16)
    y = torch.empty(shape.b, shape.n, device="cuda", dtype=torch.bfloat16)
    one = torch.ones(1, device="cuda")
    weights = torch.randint(0, 256, (count, shape.n, shape.k // 2), device="cuda", dtype=torch.uint8)
    scales = [random_scales((shape.n, shape.k // group), scale_format) for _ in range(count)]
    options = {"group": group, "scale_format": scale_format, "constant_weights": constant}
    launches = [fp4_args(weights[i], scales[i], one, x, y, **options) for i in range(count)]
    keep = (x, y, one, weights, scales)
    return lambda index, _keep=keep: kernel.launch(launches[index % count]), count, size


def fp8_call(kernel: Matvec, shape: Shape, rows: int) -> tuple[Call, int, int]:
    """As :func:`fp4_call`, for E4M3 weights."""
    size = shape.n * shape.k
    count = copies(size)
    x = torch.randn(shape.b, shape.k, device="cuda").to(torch.bfloat16)
    y = torch.empty(shape.b, shape.n, device="cuda", dtype=torch.float32)
    weights = torch.randint(0, 256, (count, shape.n, shape.k), device="cuda", dtype=torch.uint8)
    scales = torch.ones(shape.n, device="cuda")
    launches = [fp8_args(weights[i], scales, x, y, rows_per_block=rows) for i in range(count)]
    keep = (x, y, weights, scales)
    return lambda index, _keep=keep: kernel.launch(launches[index % count]), count, size


def cublas_call(shape: Shape) -> tuple[Call, int]:
    """A bf16 product by torch and the number of weight copies."""
    count = copies(2 * shape.n * shape.k)
    weights = torch.randn(count, shape.n, shape.k, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(shape.b, shape.k, device="cuda", dtype=torch.bfloat16)
    return lambda index: torch.nn.functional.linear(x, weights[index % count]), count


def stream_call(stream: Stream, bytes_each: int) -> tuple[Call, int]:
    """The reading of as many bytes as one copy of some weights and scales has."""
    count = copies(bytes_each)
    data = torch.randint(0, 256, (count, bytes_each // 16 * 16), device="cuda", dtype=torch.uint8)
    return lambda index: stream.launch(data[index % count]), count


@dataclass(frozen=True)
class Built:
    """What is timed: the FP4 kernel and its variants by name, the FP8 kernel, the read-only stream."""

    fp4: dict[str, Matvec]
    fp8: Matvec
    stream: Stream


def build(variants: list[Path], folder: Path) -> Built:
    """Build everything concurrently. Raises SystemExit with nvcc's output if something does not build."""
    sources = [CUDA / "fp4_matvec.cu", CUDA / "fp8_matvec.cu", BENCH / "stream.cu", *variants]
    libraries = [folder / f"{number}-{source.stem}.so" for number, source in enumerate(sources)]
    processes = [start_build(*pair) for pair in zip(sources, libraries, strict=True)]
    for source, process in zip(sources, processes, strict=True):
        output, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"{source} does not build:\n{output}")
    own, fp8, stream, *others = libraries
    fp4 = {"": Matvec(own, "fp4_matvec")}
    for source, library in zip(variants, others, strict=True):
        fp4[f" {source.stem}"] = Matvec(library, "fp4_matvec")
    return Built(fp4, Matvec(fp8, "fp8_matvec"), Stream(stream))


def bench(shape: Shape, built: Built) -> None:
    """Time one shape and print one line per kernel."""
    print(f"\n{shape.name}")
    call, count = cublas_call(shape)
    cublas = attempt(call, count)
    del call
    torch.cuda.empty_cache()
    kinds = [("NVFP4", "e4m3", 16), ("MXFP4", "e8m0", 32), ("FP4 bf16 scales", "bf16", 32)]
    recorded = {"NVFP4": shape.nvfp4, "MXFP4": shape.mxfp4}
    for name, scale_format, group in kinds:
        size = shape.n * shape.k // 2 + shape.n * shape.k // group * (2 if scale_format == "bf16" else 1)
        call, count = stream_call(built.stream, size)
        stream = microseconds(call, count)
        del call
        for variant, kernel in built.fp4.items():
            for constant in (True, False) if shape.b == 1 else (True,):
                call, count, _ = fp4_call(kernel, shape, scale_format, group, constant=constant)
                title = f"{name}{variant}{'' if constant else ', weights wait'}"
                line(title, microseconds(call, count), size, stream, cublas, recorded.get(name))
                del call
    call, count = stream_call(built.stream, shape.n * shape.k)
    stream = microseconds(call, count)
    del call
    for rows in (0, 16, 32):
        call, count, size = fp8_call(built.fp8, shape, rows)
        line(f"FP8 rows {rows or 'auto'}", microseconds(call, count), size, stream, cublas, None)
        del call
    print(f"  {cublas or float('nan'):9.2f} us  bf16 cuBLAS")
    torch.cuda.empty_cache()


def line(name: str, time: float, size: int, stream: float, cublas: float | None, ggml: float | None) -> None:
    """One result: time, the read-only stream's over it, and ratios to the rivals."""
    against = f"{cublas / time:5.2f} x cuBLAS" if cublas else ""
    if ggml:
        against += f"  {ggml / time:5.2f} x ggml*"
    print(
        f"  {time:9.2f} us  {size / time / 1e6:5.2f} TB/s  stream {stream:7.2f} us {stream / time:4.0%}  "
        f"{name:24} {against}"
    )


def main() -> int:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--only", default="", help="only shapes whose name contains this text")
    parser.add_argument("--source", type=Path, action="append", default=[], help="a variant of FP4")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; * recorded on an H200 in 2026")
    with tempfile.TemporaryDirectory() as folder:
        built = build(options.source, Path(folder))
        failures = fp8_failures(built.fp8)
        for variant, kernel in built.fp4.items():
            failures += [f"{failure}{variant}" for failure in fp4_failures(kernel)]
        print(f"{len(failures)} failures against FP64", *failures[:20], sep="\n  ")
        for shape in SHAPES:
            if options.only in shape.name:
                bench(shape, built)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
