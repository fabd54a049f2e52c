"""Checks the matvec kernels against FP64 on the GPU before anything is timed."""

from __future__ import annotations

import itertools

import torch
from matvec_library import Matvec, fp4_args, fp8_args

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def decode_e2m1(packed: torch.Tensor) -> torch.Tensor:
    """[..., K/2] bytes to [..., K] float64, low nibble first."""
    table = torch.tensor([*E2M1, *(-v for v in E2M1)], dtype=torch.float64, device=packed.device)
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2)
    return table[codes.long()]


def decode_scales(scales: torch.Tensor, scale_format: str) -> torch.Tensor:
    """Scale codes to float64."""
    if scale_format == "e4m3":
        return scales.view(torch.float8_e4m3fn).to(torch.float64)
    if scale_format == "e8m0":
        return torch.exp2(scales.to(torch.float64) - 127)
    return scales.view(torch.bfloat16).to(torch.float64)


def random_scales(shape: tuple[int, int], scale_format: str) -> torch.Tensor:
    """Finite scale codes of every sign and size that keeps a sum finite in fp32."""
    if scale_format == "e4m3":
        codes = torch.randint(0, 256, shape, device="cuda", dtype=torch.uint8)
        return torch.where((codes & 0x7F) == 0x7F, codes - 1, codes)
    if scale_format == "e8m0":
        return torch.randint(110, 140, shape, device="cuda", dtype=torch.uint8)
    return torch.randn(shape, device="cuda").to(torch.bfloat16)


def wrong(got: torch.Tensor, terms: torch.Tensor, products: int, roundings: int) -> int:
    """Elements of `got` [B, N] outside the bound; `terms` [B, N, K] are the exact products.

    products, roundings: steps of the tensor cores, each wrong by 22 units of 2^-24, and single precision
    operations, by one, that a term can pass through.
    """
    value, magnitude = terms.sum(-1), terms.abs().sum(-1)
    bound = (22 * products + roundings) * 2.0**-24 * magnitude * 1.01 + 1e-37
    if got.dtype == torch.bfloat16:
        bound = bound + 2.0**-8 * (value.abs() + bound)
    return int((~((got.double() - value).abs() <= bound)).sum())


def fp4_failures(kernel: Matvec) -> list[str]:
    """One line for each shape whose result is outside its bound."""
    lines = []
    for n, k, b in itertools.product((1, 7, 257), (32, 992, 1024, 3840, 8192), (1, 2, 3, 8)):
        for group, scale_format in ((16, "e4m3"), (32, "e8m0"), (16, "bf16"), (32, "e4m3")):
            pinned = (0, 16, 64) if b == 1 else (16, 32)  # 0 and 64: the kernel for one vector
            for out, rows in itertools.product((torch.bfloat16, torch.float32), pinned):
                pitch = (k // 2 + 15) // 16 * 16 + 16
                weights = torch.randint(0, 256, (n, pitch), device="cuda", dtype=torch.uint8)[:, : k // 2]
                scales = random_scales((n, k // group + 2 + k // group % 2), scale_format)[:, : k // group]
                tensor_scale = torch.tensor([0.3125], device="cuda")
                x = torch.randn(b, k, device="cuda").to(torch.bfloat16)
                y = torch.full((b, n), float("nan"), device="cuda", dtype=out)
                options = {"group": group, "scale_format": scale_format, "rows_per_block": rows}
                kernel.launch(fp4_args(weights, scales, tensor_scale, x, y, **options))
                dense = decode_e2m1(weights) * decode_scales(scales, scale_format).repeat_interleave(group, 1)
                terms = x.double()[:, None] * dense[None] * tensor_scale.double()
                count = wrong(y, terms, 8, 16 * -(-k // 2816) + 32)
                if count:
                    lines.append(
                        f"fp4 n={n} k={k} b={b} {scale_format}/{group} {out} rows={rows}: {count} wrong"
                    )
    return lines


def fp8_failures(kernel: Matvec) -> list[str]:
    """One line for each shape whose result is outside its bound."""
    lines = []
    for n, k, b in itertools.product((1, 7, 257), (1, 13, 511, 512, 3840, 8195), (1, 2, 3, 8)):
        for out, rows in itertools.product((torch.bfloat16, torch.float32), (16, 32)):
            pitch = (k + 15) // 16 * 16 + 16
            weights = torch.randint(0, 256, (n, pitch), device="cuda", dtype=torch.uint8)
            weights = torch.where((weights & 0x7F) == 0x7F, weights - 1, weights)[:, :k]
            scales = torch.randn(n, device="cuda")
            x = torch.randn(b, (k + 7) // 8 * 8, device="cuda").to(torch.bfloat16)[:, :k]
            y = torch.full((b, n), float("nan"), device="cuda", dtype=out)
            kernel.launch(fp8_args(weights, scales, x, y, rows_per_block=rows))
            dense = weights.view(torch.float8_e4m3fn).double() * scales.double()[:, None]
            count = wrong(y, x.double()[:, None] * dense[None], 2 * -(-k // 512), 19)
            if count:
                lines.append(f"fp8 n={n} k={k} b={b} {out} rows={rows}: {count} wrong")
    return lines
