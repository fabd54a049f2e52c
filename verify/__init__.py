"""verify: proves that a hand-written CUDA kernel computes the right numbers, touches only the bytes it may
touch, and synchronises properly, before any build that uses it."""

from verify.case.profile import Profile
from verify.contract import (
    Buffer,
    Contract,
    DtypeChoice,
    Global,
    Intermediate,
    KernelOracle,
    Launcher,
    Plan,
    Refusal,
    Symbol,
)

__all__ = [
    "Buffer",
    "Contract",
    "DtypeChoice",
    "Global",
    "Intermediate",
    "KernelOracle",
    "Launcher",
    "Plan",
    "Profile",
    "Refusal",
    "Symbol",
]
