"""The matvec ops by PyTorch in double precision, with its own decoders, for the parity check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from verify.contract.model import Case
from verify.oracle.arithmetic import gamma
from verify.oracle.tracked import Tracked

if TYPE_CHECKING:
    from torch import Tensor

_DOUBLE = 2.0**-53


def fp4_torch(case: Case) -> dict[str, Tracked]:
    """``y`` ``[B, N]``. Raises ModuleNotFoundError without torch."""
    import torch

    packed = torch.from_numpy(case.raw("weights").copy()).to(torch.int64)
    codes = torch.stack((packed % 16, packed // 16), -1).flatten(1)
    code = codes % 8
    # exponent 0 is subnormal: half the fraction; otherwise (1 + fraction / 2) 2^(exponent - 1)
    fraction, exponent = (code % 2).double(), (code // 2).double()
    magnitude = torch.where(exponent == 0, fraction / 2, (1 + fraction / 2) * torch.exp2(exponent - 1))
    weights = torch.where(codes >= 8, -magnitude, magnitude)
    scales = _scales(case.raw("scales"), case.dtype(case.contract.buffer("scales")))
    dense = weights.view(len(weights), -1, case["group"]) * scales[..., None]
    factor = torch.from_numpy(case.raw("tensor_scale").view(np.float32).copy()).double()
    return {"y": _linear(case, dense.flatten(1), factor)}


def fp8_torch(case: Case) -> dict[str, Tracked]:
    """``y`` ``[B, N]``. Raises ModuleNotFoundError without torch."""
    import torch

    weights = torch.from_numpy(case.raw("weights").copy()).view(torch.float8_e4m3fn).double()
    scales = torch.from_numpy(case.raw("scales").view(np.float32).copy()).double()
    return {"y": _linear(case, weights * scales[:, None], torch.ones(1, dtype=torch.float64))}


def _scales(raw: np.ndarray, dtype: str) -> Tensor:
    import torch

    bits = torch.from_numpy(raw.copy())
    if dtype == "e4m3":
        return bits.view(torch.float8_e4m3fn).double()
    if dtype == "bf16":
        return bits.view(torch.bfloat16).double()
    codes = bits.to(torch.int64)
    powers = torch.ldexp(torch.ones_like(codes, dtype=torch.float64), codes - 127)
    return torch.where(codes == 255, torch.nan, powers)


def _linear(case: Case, weights: Tensor, factor: Tensor) -> Tracked:
    """The product, with a bound on the rounding of double precision for any order of the sum."""
    import torch

    x = torch.from_numpy(case.raw("x").copy()).view(torch.bfloat16).double()
    value = torch.nn.functional.linear(x, weights) * factor
    magnitude = torch.nn.functional.linear(x.abs(), weights.abs()) * factor.abs()
    bound = gamma(weights.shape[1] + 2, _DOUBLE) * magnitude.numpy()
    return Tracked(value.numpy(), np.where(np.isfinite(value.numpy()), bound, 0.0))
