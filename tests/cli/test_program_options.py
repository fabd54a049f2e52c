"""The options of ``verify sanitize -- PROGRAM``."""

from __future__ import annotations

import pytest

from verify.cli.program import with_tools
from verify.device.interface import PROGRAM_TOOLS
from verify.device.program import ProgramOptions


def test_tool_names() -> None:
    """Fault: all, none or a misspelt name choose something else than they say."""
    assert with_tools(ProgramOptions(), ["all"]).tools == PROGRAM_TOOLS
    assert with_tools(ProgramOptions(), ["none"]).tools == ()
    assert with_tools(ProgramOptions(), ["racecheck", "memcheck"]).tools == ("memcheck", "racecheck")
    with pytest.raises(ValueError, match="--tool racechek"):
        with_tools(ProgramOptions(), ["racechek"])
    with pytest.raises(ValueError, match="no other --tool"):
        with_tools(ProgramOptions(), ["all", "none"])
