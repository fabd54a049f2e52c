"""compute-sanitizer's options as data: the flag, its tools, its first version, and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verify.device.interface import TOOLS, Tool

Version = tuple[int, ...]

ERROR_EXIT_CODE = 86
"""The tool's exit code if it reported anything; no harness exit code or shell convention uses it."""

MINIMUM_VERSION: Version = (2026, 4)
"""Older releases report correct zero-filled ``cp.async`` tails and miss uninitialised shared memory."""

PADDING_BYTES = 1 << 18
"""Guard after every allocation: at least one tile, which must fit shared memory (227 KiB per block)."""


@dataclass(frozen=True)
class Option:
    """One flag that is always set. tools: the tools that have it. since: first version that has it.

    reason: what goes wrong without it.
    """

    flag: str
    value: str
    reason: str
    tools: tuple[Tool, ...] = TOOLS
    since: Version = (0,)


ALWAYS: tuple[Option, ...] = (
    Option("--print-limit", "0", "the default stops printing at the hundredth record"),
    Option("--destroy-on-device-error", "kernel", "the default ends the context at the first error"),
    Option("--require-cuda-init", "yes", "without it a program that never reached the GPU passes"),
    Option("--check-exit-code", "yes", "a program that failed must not look clean"),
    Option("--error-exitcode", str(ERROR_EXIT_CODE), "the default exit code is 0 with errors"),
    Option("--launch-timeout", "120", "the default of 10 s is too short on a loaded machine"),
    Option("--max-connections", "64", "concurrent tools look for free ports in the same range"),
    Option("--show-backtrace", "device", "host frames cost time and only show the harness"),
    Option("--strip-paths", "no", "two files of the same name must stay distinguishable"),
    Option("--nvtx", "yes", "live regions are registered through NVTX", ("memcheck",)),
    Option("--report-api-errors", "explicit", "implicit calls of the runtime fail harmlessly", ("memcheck",)),
    Option("--padding", str(PADDING_BYTES), "a read past one buffer lands in the next one", ("memcheck",)),
    Option("--racecheck-report", "all", "only hazard records name a missing wait", ("racecheck",)),
    Option(
        "--initcheck-address-space",
        "all",
        "the default excludes shared memory",
        ("initcheck",),
        since=(2026, 4),
    ),
)


def arguments(tool: Tool, version: Version, extra: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The tool's command-line options for this version; ``extra`` ("padding": "65536") replaces or adds."""
    chosen = {o.flag: o.value for o in ALWAYS if tool in o.tools and version >= o.since}
    chosen |= {f"--{name.removeprefix('--')}": value for name, value in (extra or {}).items()}
    flat = [word for flag, value in chosen.items() for word in (flag, value)]
    return ("--tool", tool, *flat)


def version_doubt(version: Version) -> str:
    """Why a verdict of this version cannot be trusted, or empty."""
    if version >= MINIMUM_VERSION:
        return ""
    spelled = ".".join(map(str, version[:3]))
    needed = ".".join(map(str, MINIMUM_VERSION))
    return (
        f"compute-sanitizer {spelled} is older than {needed}: it reports correct zero-filled cp.async tails "
        "and misses uninitialised shared memory; install nvidia-cuda-sanitizer-api==13.5.25"
    )
