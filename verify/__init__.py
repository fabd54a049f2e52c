"""verify: proves that a hand-written CUDA kernel computes the right numbers, touches only the bytes it may
touch, and synchronises properly, before any build that uses it."""

TYPE_CHECKING = False  # known to type checkers; an import of typing could fail before errors are reported

if TYPE_CHECKING:
    from verify.contract.compared import Intermediate, KernelOracle
    from verify.contract.entries import Global, Launcher, Refusal
    from verify.contract.hypothesis import Hypothesis, Prediction
    from verify.contract.model import Buffer, Contract, Plan, Profile
    from verify.contract.symbols import DtypeChoice, Symbol

__all__ = [
    "Buffer",
    "Contract",
    "DtypeChoice",
    "Global",
    "Hypothesis",
    "Intermediate",
    "KernelOracle",
    "Launcher",
    "Plan",
    "Prediction",
    "Profile",
    "Refusal",
    "Symbol",
]

_HOMES = {
    "compared": ("Intermediate", "KernelOracle"),
    "entries": ("Global", "Launcher", "Refusal"),
    "hypothesis": ("Hypothesis", "Prediction"),
    "model": ("Buffer", "Contract", "Plan", "Profile"),
    "symbols": ("DtypeChoice", "Symbol"),
}
"""The module of the contract package that defines each name."""


def __getattr__(name: str) -> object:
    """Import lazily, so that the command has started and can be interrupted before NumPy is imported."""
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"verify.contract.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
