"""Writes folders that reproduce findings, on a GPU without Python: one ``.cu``, its input, and scripts."""

from __future__ import annotations

import filecmp
import itertools
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verify.check.showing import Showing
from verify.check.specs import spec_of
from verify.contract.discovery import source_file
from verify.contract.model import Case, Contract
from verify.device.interface import DeviceInfo
from verify.device.sanitizer.options import arguments
from verify.finding.finding import Finding, Outcome, Severity
from verify.finding.kind import HANGS
from verify.harness.build import Build, copy_headers
from verify.harness.commands import FIXED_FLAGS, WRAPPED, architecture_flags, include_folders, other_flags
from verify.harness.render import render
from verify.oracle.expectation import OracleError, Quantity, expect
from verify.system.publish import publish_folder
from verify.system.resources import resource_folder
from verify.wire.expected import expected_bytes
from verify.wire.pack import write_pack

if TYPE_CHECKING:
    from verify.check.subject import Subject

MOST_FOLDERS = 20
"""Findings beyond this many cases get no folder: most show the same faults."""

_INTERPOSER = "launch_fault_interposer"


def keep_reproductions(
    outcomes: Sequence[Outcome], subject: Subject, build: Build, folder: Path
) -> list[Outcome]:
    """The outcomes with each error's ``folder`` set to a reproduction written below ``folder``.

    Findings of one case and check share a folder. Existing folders are never replaced: another finding of the
    same case gets another folder. If a folder cannot be written, the finding is kept and says why.
    """
    written: dict[tuple[str, str], tuple[str, str]] = {}
    kept = []
    for outcome in outcomes:
        findings = []
        for finding in outcome.findings:
            key = (finding.case, finding.check)
            case = _case_of(subject, finding)
            if finding.severity is Severity.ERROR and case is not None:
                if key not in written and len(written) < MOST_FOLDERS:
                    written[key] = _kept(finding, case, subject, build, folder)
                path, problem = written.get(key, ("", ""))
                finding = replace(finding, folder=path)
                if problem:
                    finding = replace(finding, details=(*finding.details, ("no folder", problem)))
            findings.append(finding)
        kept.append(replace(outcome, findings=tuple(findings)))
    return kept


def _kept(finding: Finding, case: Case, subject: Subject, build: Build, folder: Path) -> tuple[str, str]:
    """The folder of a finding, or empty and the reason."""
    name = f"{case.id.replace('/', '-')}-{finding.check}"
    try:
        executed = {run.id: run for run in subject.executed()}
        shown = spec_of(finding.check).shows(finding, case, executed, subject.cases)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as scratch:
            made = Path(scratch) / name
            write_reproduction(made, build, shown, finding, subject.device.info())
            return str(_placed(made, folder)), ""
    except Exception as problem:  # a finding must not be lost because of its folder
        return "", f"{type(problem).__name__}: {' '.join(str(problem).split())}"


def _placed(made: Path, folder: Path) -> Path:
    """Move a folder to an unused name, unless one with the same files exists; returns the path."""
    for number in itertools.count(1):
        target = folder / (made.name if number == 1 else f"{made.name}-{number}")
        # Another process may use the name meanwhile; a folder with files is never replaced.
        if not target.exists() and publish_folder(made, target):
            return target
        if target.is_dir() and _same_files(made, target):
            return target
    raise AssertionError("unreachable")


def _same_files(made: Path, there: Path) -> bool:
    files = [path.relative_to(made) for path in made.rglob("*") if path.is_file()]
    return all((there / f).is_file() and filecmp.cmp(made / f, there / f, shallow=False) for f in files)


def _case_of(subject: Subject, finding: Finding) -> Case | None:
    """The case of a finding; None if it is not about a single case."""
    kernel, _, rest = finding.case.partition("/")
    fixture, _, profile = rest.partition("/")
    known = subject.cases.get(fixture, {}) if kernel == subject.contract.name else {}
    if finding.where.startswith("refusal ") and fixture in subject.bases:
        return subject.bases[fixture][1]
    return known.get(profile)


def write_reproduction(
    folder: Path, build: Build, shown: Showing, finding: Finding, device: DeviceInfo
) -> None:
    """Write the folder: sources, headers, pack, expected intervals, ``build.sh``, ``run.sh``, ``README``.

    device: the device that found it, on which ``run.sh`` runs it by default.
    """
    folder.mkdir(parents=True)
    contract = build.contract
    production = source_file(contract).absolute()
    name = f"{contract.name}_case"
    (folder / f"{name}.cu").write_text(render(contract, production.name, whole=True))
    copy_headers(folder)
    # A header may be found beside the source or in an include folder; it is copied for both.
    bases = [production.parent, *include_folders(contract)]
    for file in build.files:
        targets = [file.relative_to(base) for base in bases if file.is_relative_to(base)]
        for target in targets or [Path(file.name)]:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / target)
    write_pack(folder / "pack", shown.runs)
    if shown.judged:
        expected = _expected(shown.judged[0].case)
        (folder / "pack" / "expected").write_bytes(expected_bytes(shown.judged[0].case, expected))
    if shown.swept:
        shutil.copy(resource_folder("harness_templates") / f"{_INTERPOSER}.cpp", folder)
    _script(folder / "build.sh", _build_lines(contract, build, name, shown.swept))
    _script(folder / "run.sh", _run_lines(finding, name, shown, device))
    (folder / "README").write_text(_readme(finding, name))


def _expected(case: Case) -> Mapping[str, Quantity]:
    try:
        return expect(case)
    except OracleError:
        return {}


def _build_lines(contract: Contract, build: Build, name: str, swept: bool) -> list[str]:
    # Headers from the contract's own folders were copied here.
    flags = [*FIXED_FLAGS, *architecture_flags(build.architectures), *other_flags(contract), "-I."]
    wraps = [f"-Xlinker=--wrap={wrapped}" for wrapped in WRAPPED]
    lines = [
        "# Needs nvcc 13 and g++; NVCC selects another nvcc than the one found when this was written.",
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


def _run_lines(finding: Finding, name: str, shown: Showing, device: DeviceInfo) -> list[str]:
    lines = [
        "# DEVICE=gpu runs it on the GPU, DEVICE=cpu on the suite's CPU device; default: what found it.",
        "# Exit code 0 means that nothing is wrong.",
        f"PYTHON=${{PYTHON:-{shlex.quote(sys.executable)}}}",
        'command -v "$PYTHON" > /dev/null || PYTHON=python3',
        f"DEVICE=${{DEVICE:-{device.kind}}}",
    ]
    if shown.suite:
        # Only the suite can count, or compute, what this needs.
        arguments_of = finding.repeat.removeprefix("python ").rpartition(" --device ")[0]
        return [*lines, f'exec "$PYTHON" {arguments_of} --device "$DEVICE" --findings again']
    lines.append("rm -rf out again log && mkdir out again")
    lines += _device_lines(name, shown, device, "out", shown.schedule, finding.kind in HANGS)
    alarms = "|".join(("^@error", *shown.alarms))
    lines.append(f"if grep -E -q {shlex.quote(alarms)} log; then exit 1; fi")
    if shown.seed:
        lines += _device_lines(name, shown, device, "again", shown.seed, False)
        lines += [f"./{name} same out/{run.id}.out again/{run.id}.out" for run in shown.same]
    elif len(shown.same) > 1:
        files = " ".join(f"out/{run.id}.out" for run in shown.same)
        row = f"--row {shown.row[0]} {shown.row[1]} " if shown.row is not None else ""
        lines.append(f"./{name} same {row}{files}")
    if shown.judged:
        files = " ".join(f"out/{run.id}.out" for run in shown.judged)
        lines.append(f"./{name} judge --expected pack/expected {files}")
    return lines


def _device_lines(
    name: str, shown: Showing, device: DeviceInfo, out: str, seed: int, hangs: bool
) -> list[str]:
    """Run the harness on the chosen device, with its output in ``log``; its failure ends the script."""
    preload = f"env LD_PRELOAD=$PWD/{_INTERPOSER}.so " if shown.swept else ""
    harness = f"./{name} run --pack pack/manifest.pack --out {out}"
    with_tool = shlex.join(arguments(shown.tool, (2026, 4, 0, 0), {})) if shown.tool else ""
    on_gpu = f'"${{SANITIZER:-compute-sanitizer}}" {with_tool} {harness}' if shown.tool else harness
    on_cpu = (
        f'"$PYTHON" -m verify sanitize --device cpu --arch {device.architecture} '
        f"{f'--seed {seed} ' if seed else ''}--tool {shown.tool or 'none'} -- {harness}"
    )
    limited = "timeout ${VERIFY_RUN_SECONDS:-120} " if hangs else ""
    return [
        "code=0",
        'if [ "$DEVICE" = gpu ]; then',
        f"    {limited}{preload}{on_gpu} > log 2>&1 || code=$?",
        "else",
        f"    {limited}{preload}{on_cpu} > log 2>&1 || code=$?",
        "fi",
        "cat log",
        '[ "$code" = 0 ] || exit "$code"',
    ]


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
            "pack/ has the input, out/ the results.",
            f"With the suite: {finding.repeat}" if finding.repeat else "",
            "",
        ]
    )
