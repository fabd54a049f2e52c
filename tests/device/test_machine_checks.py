"""The CPU device's checks have one list in the machine and one here."""

from __future__ import annotations

import re

from verify.device.interface import MACHINE_CHECKS, PROGRAM_TOOLS, TOOLS
from verify.system.resources import resource_folder


def test_the_names_are_those_of_the_machine() -> None:
    """Fault: a check of the machine cannot be asked for, or a name is passed on that the machine refuses."""
    table = (resource_folder("machine") / "observers" / "checks.inc").read_text()
    checks = re.findall(r"^CHECK\((\w+), \w+, (true|false)\)", table, re.MULTILINE)
    assert {name for name, _ in checks} == set(MACHINE_CHECKS)
    assert {name for name, finds in checks if finds == "true"} == set(PROGRAM_TOOLS)
    assert set(TOOLS) <= set(PROGRAM_TOOLS)
