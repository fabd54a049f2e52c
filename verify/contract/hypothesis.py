"""Faults that a contract can think of: what a kernel with such a fault would give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Answers(Protocol):
    """A case with a reference of its own: one whose inputs or symbols are not those of the run."""

    @property
    def reference(self) -> Mapping[str, np.ndarray]: ...


@dataclass(frozen=True)
class Prediction:
    """The outputs of a kernel that has one fault."""

    says: str
    """The fault, as it follows "matches the reference with"; the same words in every case of a fixture.
    Example: ``says="the last column dropped"``"""

    gives: Answers | Mapping[str, np.ndarray]
    """Values by quantity, float64, or an altered case, whose reference and bounds are used. A quantity that
    is left out stays as the reference has it.
    Example: ``gives={"y": np.zeros(3)}``"""

    elsewhere: Callable[[Any], Answers | Mapping[str, np.ndarray]] | None = None
    """For a fault that was solved for from what was observed: from another case of the fixture to what the
    same fault would give there. None: ``predict`` gives it there in the same words, or it changes nothing.
    Example: ``elsewhere=lambda case: {"y": np.zeros(case["rows"])}``"""

    @property
    def values(self) -> Mapping[str, np.ndarray]:
        """The values, whichever way they are given."""
        return self.gives if isinstance(self.gives, Mapping) else self.gives.reference


@dataclass(frozen=True)
class Hypothesis:
    """A fault, or a family of faults, that a failing comparison is tested for."""

    name: str
    """A short name, for tables. Example: ``name="column-dropped"``"""

    predict: Callable[[Any, Mapping[str, np.ndarray]], Iterable[Prediction]]
    """From the case and the observed quantities to what the fault would give: one prediction, or one for each
    member of the family, the likely ones first. The observed quantities allow to solve for a member.
    Example: ``predict=lambda case, seen: [Prediction("y doubled", {"y": 2 * case.reference["y"]})]``"""
