"""verify: proves that a hand-written CUDA kernel computes the right numbers, touches only the bytes it may
touch, and synchronises properly, before any build that uses it."""

from verify.contract import (
    Buffer,
    Contract,
    Global,
    Intermediate,
    Launcher,
    Plan,
    Refusal,
    Symbol,
)

__all__ = ["Buffer", "Contract", "Global", "Intermediate", "Launcher", "Plan", "Refusal", "Symbol"]
