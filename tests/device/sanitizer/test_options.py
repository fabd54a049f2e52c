"""compute-sanitizer's options: what is passed is what the logs were recorded with, gated by version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verify.device.interface import TOOLS, Tool
from verify.device.sanitizer.options import (
    ALWAYS,
    ERROR_EXIT_CODE,
    PADDING_BYTES,
    arguments,
    version_doubt,
)

LOGS = Path(__file__).parents[1] / "logs"
RECORDED = sorted(LOGS.glob("*/*/*.json"))


@pytest.mark.parametrize("recording", RECORDED, ids=["/".join(p.parts[-3:]) for p in RECORDED])
def test_the_recordings_were_made_with_the_options_in_use(recording: Path) -> None:
    """Fault: an option is added that no release was ever seen to accept, or one is lost."""
    version = tuple(map(int, recording.parts[-3].split(".")))
    argv = json.loads(recording.read_text())["argv"]
    tool: Tool = argv[argv.index("--tool") + 1]
    used = tuple(argv[1 : argv.index("--log-file")])
    assert used == arguments(tool, version)


@pytest.mark.parametrize("tool", TOOLS)
def test_no_option_that_loses_findings_keeps_its_default(tool: Tool) -> None:
    """Fault: a hundred records at most, the context gone at the first, exit code 0 with errors."""
    words = arguments(tool, (2026, 4))
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options["--print-limit"] == "0"
    assert options["--destroy-on-device-error"] == "kernel"
    assert options["--require-cuda-init"] == "yes"
    assert options["--check-exit-code"] == "yes"
    assert options["--error-exitcode"] == str(ERROR_EXIT_CODE)
    assert options["--launch-timeout"] == "120"
    assert options.get("--padding") == (str(PADDING_BYTES) if tool == "memcheck" else None)
    assert options.get("--racecheck-report") == ("all" if tool == "racecheck" else None)
    assert options.get("--initcheck-address-space") == ("all" if tool == "initcheck" else None)


def test_an_option_is_not_given_to_a_release_that_lacks_it() -> None:
    """Fault: the older release ends with "unknown option" and verifies nothing."""
    assert "--initcheck-address-space" not in arguments("initcheck", (2025, 3, 1))


def test_options_of_a_job_replace_and_add() -> None:
    """Fault: a job cannot ask for a larger guard, or gets both."""
    words = arguments("memcheck", (2026, 4), {"padding": "4096", "check-cache-control": "yes"})
    assert words.count("--padding") == 1
    assert words[words.index("--padding") + 1] == "4096"
    assert words[-2:] == ("--check-cache-control", "yes")


def test_every_option_says_why_it_is_set() -> None:
    """Fault: an option does not say why it is set."""
    assert all(len(option.reason) > 20 for option in ALWAYS)


def test_the_padding_holds_a_tile_and_the_newest_release_is_not_doubted() -> None:
    """Fault: an overrun by one tile lands in the next allocation; or every verdict is inconclusive."""
    assert PADDING_BYTES >= 227 * 1024
    assert version_doubt((2026, 4, 0, 0)) == ""
    assert "2025.3.1 is older" in version_doubt((2025, 3, 1, 0))
