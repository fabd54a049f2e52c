"""A data profile: how the live inputs of a case are filled, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from verify.contract.case import Case


@dataclass(frozen=True)
class Profile:
    """One way to fill the inputs.

    generate: (case without arrays, generator) -> {buffer: real values over the view}, float64 or integers.
    Values are rounded to the buffer's format afterwards, so the reference sees what the kernel sees. Raw
    storage arrays (the format's storage dtype with a name ending in ``:raw``) are taken as they are.
    pins: one sentence: which faults this profile makes visible.
    control_path: the data takes a path through the kernel of its own, so the tools run it too; the first
    profile of a contract always counts as one.
    """

    name: str
    generate: Callable[[Case, np.random.Generator], dict[str, np.ndarray]]
    pins: str
    control_path: bool = False
