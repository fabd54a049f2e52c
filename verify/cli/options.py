"""Options that several commands share, with their help texts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated

import typer

from verify.check.specs import CHECKS
from verify.cli.console import fail
from verify.contract.discovery import find_contracts, own_contract_files
from verify.device.interface import Capability, Device


def _complete_kernel(incomplete: str) -> list[str]:
    names = [p.name.removesuffix("_contract.py") for p in own_contract_files()]
    return [n for n in names if n.startswith(incomplete)]


def _complete_check(incomplete: str) -> list[str]:
    return [c for c in CHECKS if c.startswith(incomplete)]


Kernels = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KERNEL",
        help="A kernel's name, its contract file, its .cu, or a folder to search. Default: every contract of "
        "the suite.",
        autocompletion=_complete_kernel,
        show_default=False,
    ),
]
Expression = Annotated[
    list[str] | None,
    typer.Option(
        "-k",
        metavar="EXPR",
        help="Fixtures to select: a full name, or words joined by and, or, not.",
        show_default=False,
    ),
]
DeviceChoice = Annotated[
    str,
    typer.Option(
        "--device", metavar="auto|gpu|cpu", help="Where to run. auto: a GPU if there is one, else cpu."
    ),
]
Checks = Annotated[
    list[str] | None,
    typer.Option(
        "--check",
        metavar="NAME",
        help=f"Run only this check (repeatable): {', '.join(CHECKS)}.",
        autocompletion=_complete_check,
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings count as findings.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON on standard output instead of text.", show_default=False)
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every finding.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", show_default=False)]
Tripwires = Annotated[
    bool,
    typer.Option("--tripwires/--no-tripwires", help="Run each tool on its planted faults, on each device."),
]
Architecture = Annotated[
    str | None,
    typer.Option(
        "--arch", metavar="sm_XX", help="Build for this architecture, not the device's.", show_default=False
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        metavar="N",
        min=2,
        max=1_000_000,
        help="On the CPU device, run the tools and determinism under N schedules.",
        show_default=False,
    ),
]
KeepFolder = Annotated[
    Path,
    typer.Option("--findings", metavar="DIR", help="Where reproduction folders of findings are kept."),
]


def one_expression(given: list[str] | None) -> str | None:
    """The ``-k`` expression; several are an error, since the last would silently override the others."""
    if given and len(given) > 1:
        joined = " or ".join(given)
        fail(f"-k is given {len(given)} times: join the words, as in -k {joined!r}")
    return given[0] if given else None


def require_folder(findings: Path) -> None:
    """Exit with a usage error if the folder of ``--findings`` is not writable. Leaves nothing behind."""
    made = [p for p in (findings, *findings.absolute().parents) if not p.exists()]
    try:
        findings.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=findings):
            pass
    except OSError as error:
        fail(f"--findings {findings}: cannot be written to: {error.strerror}")
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


def schedules(seeds: int | None, device: Device | None) -> int:
    """How many schedules to try, 0 for the usual ones; a usage error where no seed decides the schedule."""
    if seeds is not None and device is not None and Capability.SEEDS_SCHEDULES not in device.capabilities:
        fail(f"--seeds {seeds}: a {device.name} has schedules of its own: use --device cpu")
    return seeds or 0


def contracts(kernels: list[str] | None) -> tuple:  # type: ignore[type-arg]
    """The contracts that a command line names."""
    return find_contracts(kernels or [], [Path.cwd()] if kernels else [])
