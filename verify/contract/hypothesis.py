"""Faults that a contract anticipates: what a kernel with such a fault would return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Answers(Protocol):
    """A case with its own reference: its inputs or symbols differ from the run's."""

    @property
    def reference(self) -> Mapping[str, np.ndarray]: ...


@dataclass(frozen=True)
class Prediction:
    """The outputs of a kernel that has one fault."""

    says: str
    """The fault, as a phrase after "matches the reference with"; the same in every case of a fixture.
    Example: ``says="the last column dropped"``"""

    gives: Answers | Mapping[str, np.ndarray]
    """Values by quantity, float64, or an altered case, whose reference and bounds are used. A quantity that
    is missing is as in the reference.
    Example: ``gives={"y": np.zeros(3)}``"""

    elsewhere: Callable[[Any], Answers | Mapping[str, np.ndarray]] | None = None
    """For a fault whose parameters were solved for: a function of another case of the fixture that returns
    what the same fault would give there. None: ``predict`` returns it there with the same ``says``, or it
    changes nothing.
    Example: ``elsewhere=lambda case: {"y": np.zeros(case["rows"])}``"""

    @property
    def values(self) -> Mapping[str, np.ndarray]:
        """The values by quantity, whether given directly or by an altered case."""
        return self.gives if isinstance(self.gives, Mapping) else self.gives.reference


@dataclass(frozen=True)
class Hypothesis:
    """A fault, or a family of faults, for which a failing comparison is tested."""

    name: str
    """A short name, for tables. Example: ``name="column-dropped"``"""

    predict: Callable[[Any, Mapping[str, np.ndarray]], Iterable[Prediction]]
    """A function of the case and the observed quantities that returns what the fault would give: one
    prediction, or one for each member of the family, likely ones first. It may use the observed quantities
    to find a member.
    Example: ``predict=lambda case, seen: [Prediction("y doubled", {"y": 2 * case.reference["y"]})]``"""
