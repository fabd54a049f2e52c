"""A folder that repeats a finding, on a GPU without Python: one ``.cu``, its input, build and run lines."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verify.case.case import Case
from verify.case.expected import expected_bytes
from verify.case.pack import write_pack
from verify.case.run import Run
from verify.check.carried import CALLS_BEFORE
from verify.check.matrix import runs_for
from verify.contract import Contract
from verify.device.interface import TOOLS, DeviceInfo
from verify.device.sanitizer.options import arguments
from verify.discovery import source_file
from verify.finding import Finding, Outcome, Severity
from verify.harness.build import (
    FIXED_FLAGS,
    WRAPPED,
    Build,
    architecture_flags,
    copy_headers,
    include_folders,
    other_flags,
)
from verify.harness.render import render
from verify.oracle.expectation import OracleError, Quantity, expect
from verify.resources import resource_folder

if TYPE_CHECKING:
    from verify.check.subject import Subject

MOST_FOLDERS = 20
"""Findings beyond this many cases get no folder of their own; the others show the same faults."""

_INTERPOSER = "launch_fault_interposer"


def keep_reproductions(
    outcomes: Sequence[Outcome], subject: Subject, build: Build, folder: Path
) -> list[Outcome]:
    """The outcomes with each error's ``folder`` set to a reproduction written below ``folder``.

    Findings of one case under one check share a folder. An earlier folder of the same name is replaced.
    """
    written: dict[tuple[str, str], Path] = {}
    kept = []
    for outcome in outcomes:
        findings = []
        for finding in outcome.findings:
            key = (finding.case, finding.check)
            case = _case_of(subject, finding)
            if finding.severity is Severity.ERROR and case is not None:
                if key not in written and len(written) < MOST_FOLDERS:
                    runs = runs_of(finding, case, subject.executed(), subject.cases)
                    written[key] = folder / f"{case.id.replace('/', '-')}-{finding.check}"
                    device = subject.device.info()
                    write_reproduction(written[key], build, runs, finding, _expected(case), device)
                if key in written:
                    finding = replace(finding, folder=str(written[key]))
            findings.append(finding)
        kept.append(replace(outcome, findings=tuple(findings)))
    return kept


def _case_of(subject: Subject, finding: Finding) -> Case | None:
    """The case that a finding names; None for one that is about no single case."""
    kernel, _, rest = finding.case.partition("/")
    fixture, _, profile = rest.partition("/")
    known = subject.cases.get(fixture, {}) if kernel == subject.contract.name else {}
    if finding.where.startswith("refusal ") and fixture in subject.bases:
        return subject.bases[fixture][1]
    return known.get(profile)


def _expected(case: Case) -> Mapping[str, Quantity]:
    try:
        return expect(case)
    except OracleError:
        return {}


def runs_of(
    finding: Finding,
    case: Case,
    executed: Iterable[Run],
    cases: Mapping[str, Mapping[str, Case]],
) -> list[Run]:
    """The runs that show a finding: those that its check did of this case, or an ordinary one.

    cases: of all fixtures, for a finding that takes the calls before it.
    """
    mine = [run for run in executed if run.case.id == case.id]
    details = dict(finding.details)
    chosen: list[Run]
    match finding.check:
        case check if check in TOOLS and CALLS_BEFORE in details:
            every = [run for listed in cases.values() for run in runs_for(check, listed)]
            last = max(i for i, run in enumerate(every) if run.case.id == case.id)
            chosen = every[: last + 1]
        case check if check in TOOLS:
            chosen = list(runs_for(check, {case.profile: case}))
        case "determinism":
            chosen = [run for run in mine if run.mode == "repeat"]
        case "launch" if finding.where.startswith("refusal "):
            name = finding.where.removeprefix("refusal ")
            chosen = [run for run in executed if run.id.endswith(f".refuse-{name}")]
        case "launch" if "mode" in details:
            chosen = [run for run in mine if run.mode == details["mode"]]
        case _:
            chosen = [run for run in mine if run.mode == "once"]
    return chosen or [Run("once", case)]


def write_reproduction(
    folder: Path,
    build: Build,
    runs: Sequence[Run],
    finding: Finding,
    expected: Mapping[str, Quantity],
    device: DeviceInfo,
) -> None:
    """Write the folder: sources, headers, pack, expected intervals, ``build.sh``, ``run.sh``, ``README``.

    device: what found it, and what ``run.sh`` therefore runs it on.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    contract = build.contract
    production = source_file(contract).absolute()
    name = f"{contract.name}_case"
    (folder / f"{name}.cu").write_text(render(contract, production.name, whole=True))
    copy_headers(folder)
    # A header is found from beside the source or from an include folder; it is copied for both.
    bases = [production.parent, *include_folders(contract)]
    for file in build.files:
        targets = [file.relative_to(base) for base in bases if file.is_relative_to(base)]
        for target in targets or [Path(file.name)]:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / target)
    write_pack(folder / "pack", runs)
    # A refused call has a case of its own, with other shapes than the one that its id names.
    judged = runs[0].case.id == finding.case and runs[0].mode != "refuse" and bool(expected)
    if judged:
        (folder / "pack" / "expected").write_bytes(expected_bytes(runs[0].case, expected))
    swept = finding.where.startswith("pass ")
    if swept:
        shutil.copy(resource_folder("harness_templates") / f"{_INTERPOSER}.cpp", folder)
    _script(folder / "build.sh", _build_lines(contract, build, name, swept))
    _script(folder / "run.sh", _run_lines(finding, name, swept, judged, device))
    (folder / "README").write_text(_readme(finding, name))


def _build_lines(contract: Contract, build: Build, name: str, swept: bool) -> list[str]:
    # Headers from the contract's own folders were copied here.
    flags = [*FIXED_FLAGS, *architecture_flags(build.architectures), *other_flags(contract), "-I."]
    wraps = [f"-Xlinker=--wrap={wrapped}" for wrapped in WRAPPED]
    lines = [
        "# Needs nvcc 13 and g++; NVCC names another nvcc than the one found when this was written.",
        f"NVCC=${{NVCC:-{shlex.quote(str(build.toolchain.nvcc))}}}",
        '[ -x "$NVCC" ] || NVCC=nvcc',
        'ROOT=$(dirname "$(dirname "$(command -v "$NVCC")")")',
        "# The runtime of NVIDIA's Python wheels has no libcudart.so, so it is named in full.",
        'LINK="-cudart shared"',
        'if [ -e "$ROOT/lib/libcudart.so.13" ] && [ ! -e "$ROOT/lib/libcudart.so" ]; then',
        '    LINK="-cudart none -L$ROOT/lib -l:libcudart.so.13 -Xlinker -rpath=$ROOT/lib,--enable-new-dtags"',
        "fi",
        f'"$NVCC" {shlex.join([*flags, *wraps, "-o", name, f"{name}.cu"])} $LINK -ldl',
    ]
    if swept:
        lines.append(
            f'g++ -std=c++17 -shared -fPIC -I"$ROOT/include" -o {_INTERPOSER}.so {_INTERPOSER}.cpp -ldl'
        )
    return lines


def _run_lines(finding: Finding, name: str, swept: bool, judged: bool, device: DeviceInfo) -> list[str]:
    harness = f"./{name} run --pack pack/manifest.pack --out out"
    tool = next((t for t in TOOLS if t == finding.check), None)
    with_tool = shlex.join(arguments(tool, (2026, 4, 0, 0), {})) if tool else ""
    on_gpu = f'"${{SANITIZER:-compute-sanitizer}}" {with_tool} {harness}' if tool else harness
    on_cpu = (
        f'"$PYTHON" -m verify sanitize --device cpu --arch {device.architecture} '
        f"--tool {tool or 'none'} -- {harness}"
    )
    preload = [f"export LD_PRELOAD=$PWD/{_INTERPOSER}.so"] if swept else []
    lines = [
        "# DEVICE=gpu runs it on the GPU, DEVICE=cpu on the suite's CPU device; without, what found it.",
        f"PYTHON=${{PYTHON:-{shlex.quote(sys.executable)}}}",
        'command -v "$PYTHON" > /dev/null || PYTHON=python3',
        "rm -rf out && mkdir out",
        *preload,
        f'if [ "${{DEVICE:-{device.kind}}}" = gpu ]; then',
        f"    {on_gpu}",
        "else",
        f"    {on_cpu}",
        "fi",
    ]
    if judged and finding.check not in TOOLS:
        lines.append(f"./{name} judge --expected pack/expected out/*.out")
    return lines


def _script(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(["#!/bin/sh", "set -e", 'cd "$(dirname "$0")"', *lines]) + "\n")
    path.chmod(0o755)


def _readme(finding: Finding, name: str) -> str:
    source = f"{finding.source}" if finding.source else ""
    facts = {
        "finding": f"{finding.check}: {finding.kind}",
        "case": finding.case,
        "source": source,
        "where": finding.where,
        "seen": finding.seen,
        "promised": finding.promised,
        **dict(finding.details),
    }
    lines = [f"{name}: {text}" for name, text in facts.items() if text]
    return "\n".join(
        [
            *lines,
            "",
            "./build.sh compiles the production source, unchanged, with the harness around it.",
            "./run.sh runs this case on the device that found it; DEVICE=gpu or DEVICE=cpu chooses another.",
            "On a GPU it needs no Python, on the CPU device an environment with the suite.",
            "pack/ holds the input, out/ what came of it.",
            f"With the suite: {finding.repeat}" if finding.repeat else "",
            "",
        ]
    )
