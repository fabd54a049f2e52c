"""The list of checks with their properties; matrix.toml has their runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from verify.check.compare import check_compare
from verify.check.determinism import check_determinism
from verify.check.launch import check_launch
from verify.check.parity import check_parity
from verify.check.poison import check_poison
from verify.check.sanitize import check_tools
from verify.check.showing import Shows, by_matrix, by_session, by_suite
from verify.check.subject import Subject
from verify.check.traffic import check_traffic
from verify.device.interface import TOOLS, Capability, Device, Tool
from verify.finding.finding import Outcome

Check = Callable[[Subject], list[Outcome]]


@dataclass(frozen=True)
class CheckSpec:
    """One check.

    function: its outcomes for a subject. shows: how its findings are reproduced. tool: the checking tool that
    it uses; tools are run together. needs: the capability that a device must have. usual: run if no check is
    named. beside: runs concurrently with the other checks, since it waits for a device while they compute;
    the repeat lines of the others' findings are tried.
    """

    name: str
    function: Check
    shows: Shows
    tool: Tool | None = None
    needs: Capability | None = None
    usual: bool = True
    beside: bool = False

    def runs_on(self, device: Device | None) -> bool:
        """Whether a device supports it; without a device, whether every device does."""
        if device is None:
            return self.needs is None
        if self.tool is not None:
            return self.tool in device.tools
        return self.needs is None or self.needs in device.capabilities


def _tool(tool: Tool) -> CheckSpec:
    return CheckSpec(tool, partial(check_tools, tools=(tool,)), by_matrix, tool, beside=True)


SPECS = (
    CheckSpec("compare", check_compare, by_matrix),
    CheckSpec("poison", check_poison, by_matrix),
    *map(_tool, TOOLS),
    CheckSpec("traffic", check_traffic, by_suite, needs=Capability.COUNTS_READS, beside=True),
    CheckSpec("determinism", check_determinism, by_session),
    CheckSpec("launch", check_launch, by_session),
    CheckSpec("parity", check_parity, by_suite, usual=False),
)
"""All checks, in the order of reports."""

CHECKS = tuple(spec.name for spec in SPECS)


_BY_NAME = {spec.name: spec for spec in SPECS}


def spec_of(check: str) -> CheckSpec:
    """The check of that name. Raises KeyError for an unknown name."""
    return _BY_NAME[check]


def usual_checks(device: Device | None) -> tuple[str, ...]:
    """The checks that are run on a device if none is named."""
    return tuple(spec.name for spec in SPECS if spec.usual and spec.runs_on(device))
