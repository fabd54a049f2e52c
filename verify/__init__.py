"""verify: proves that a hand-written CUDA kernel computes the right numbers, touches only the bytes it may
touch, and synchronises properly, before any build that uses it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verify.contract.model import (
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
    from verify.contract.profile import Profile

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


def __getattr__(name: str) -> Any:
    """On demand, so that the command is under way, and can be interrupted, before NumPy is imported."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "verify.contract.profile" if name == "Profile" else "verify.contract.model"
    return getattr(import_module(module), name)
