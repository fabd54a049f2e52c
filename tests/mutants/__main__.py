"""``python -m tests.mutants [KERNEL]``: plants every fault, and counts those that the suite reports."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.mutants.planted import Mutant, kernels_with_mutants, mutants_of
from tests.mutants.right import try_right
from tests.mutants.trial import Fate, Trial, Trials, try_all, usual_jobs
from verify.check.specs import usual_checks
from verify.device.select import CHOICES, NoDevice, select_device
from verify.gate.selection import SelectionError, select_names
from verify.system.exit_code import ExitCode

EXIT_SURVIVORS = 1
EXIT_NO_DEVICE = 3
MOST_ALARMS = 20


def parser() -> argparse.ArgumentParser:
    """The options, each with the sentence that ``--help`` prints."""
    kernels = kernels_with_mutants()
    result = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description="Plant every fault of a kernel's mutants and count those that the suite reports.",
        epilog="Exit codes: 0 all killed and the right kernel clean, 1 not so, 2 usage, 3 no device.",
    )
    add = result.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help=f"of {', '.join(kernels)} (default: all)")
    add("-k", metavar="EXPR", default=None, help="mutants to try: a name, or words joined by and, or, not")
    add("--device", choices=CHOICES, default="auto", help="where to run; auto: a GPU if there is one")
    add("--jobs", type=int, default=usual_jobs(), help="compilers at a time (default: one a core)")
    add("--every-check", action="store_true", help="ask all checks, to see which others report a fault")
    add("--every-fixture", action="store_true", help="run all fixtures, not those that are known to show it")
    add("--right", type=int, default=0, metavar="N", help="also run the right kernel N times: must be clean")
    add("--json", type=Path, metavar="FILE", help="write the trials there, with each check's first finding")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    asked = parser().parse_args(arguments)
    known = kernels_with_mutants()
    for kernel in asked.kernels:
        if kernel not in known:
            print(f"{kernel}: has no mutants (known: {', '.join(known)})", file=sys.stderr)
            return ExitCode.USAGE
    try:
        mutants = _selected(asked.kernels or known, asked.k)
    except SelectionError as error:
        print(error, file=sys.stderr)
        return ExitCode.USAGE
    device = select_device(asked.device)
    if isinstance(device, NoDevice):
        print(f"no device: {device.reason}", file=sys.stderr)
        return EXIT_NO_DEVICE

    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {text}", file=sys.stderr, flush=True)

    if asked.every_fixture:
        mutants = [replace(mutant, fixtures=None) for mutant in mutants]
    seen = [m for m in mutants if m.expected(device.name)]
    trials = Trials(device, usual_checks(device) if asked.every_check else ())
    tried = try_all(seen, trials, asked.jobs, say)
    print(table(tried))
    for mutant in mutants:
        if mutant not in seen:
            print(f"not visible on {device.name}: {mutant.name}: {mutant.fault}")
    alarms = []
    if asked.right:
        for kernel in dict.fromkeys(m.kernel for m in mutants):
            alarms += try_right(kernel, device, asked.right, say)
        print(f"the right kernels, {asked.right} times each: {len(alarms)} false alarms")
        for alarm in alarms[:MOST_ALARMS]:
            print(f"  {alarm}")
        if len(alarms) > MOST_ALARMS:
            print(f"  and {len(alarms) - MOST_ALARMS} more; --json has them all")
    killed = sum(t.fate is Fate.KILLED for t in tried)
    seconds = time.monotonic() - started
    print(f"{killed} of {len(tried)} mutants killed on {device.info().name} in {seconds:.0f} s")
    if asked.json:
        document = {
            "device": device.info().name,
            "versions": dict(device.info().versions),
            "seconds": round(seconds, 1),
            "killed": killed,
            "trials": [t.as_json() for t in tried],
            "right": {"repeats": asked.right, "alarms": alarms},
        }
        asked.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if killed == len(tried) and not alarms else EXIT_SURVIVORS


def _selected(kernels: Sequence[str], expression: str | None) -> list[Mutant]:
    """The mutants wanted. Raises SelectionError when there is none."""
    every = [m for kernel in kernels for m in mutants_of(kernel)]
    names = select_names(tuple(dict.fromkeys(m.name for m in every)), expression)
    return [m for m in every if m.name in names]


def table(trials: Sequence[Trial]) -> str:
    """One line a mutant: fate, name, the checks that must report it, those that did, seconds, the fault."""
    rows = [("fate", "mutant", "expected", "reported by", "s", "fault")]
    for one in trials:
        rows.append(
            (
                str(one.fate),
                one.mutant.name,
                " ".join(one.mutant.expected(one.device)),
                " ".join(one.reported_by) or "-",
                f"{one.seconds:.1f}",
                one.mutant.fault,
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = []
    for row, trial in zip(rows, [None, *trials], strict=True):
        lines.append("  ".join([*(c.ljust(w) for c, w in zip(row[:5], widths, strict=True)), row[5]]))
        if trial is not None and trial.missing:
            lines.append(f"{' ' * widths[0]}  missing: {trial.missing}")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
