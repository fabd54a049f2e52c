"""Measures the CPU device in thread-instructions per second, with all checks and with none.

    python bench/machine_speed.py [KERNEL] [--fixture WORDS] [--arch sm_90] [--cores 1,2] [--sizes]
                                  [--batch N] [--processes]

Runs every case of a kernel's fixtures (default: flash_decode) on the CPU device, once per setting, and adds
up only the launches of that kernel: the harness's own kernels, start-up, parsing and transfers are not
counted. One thread-instruction is one lane of one PTX instruction, including lanes that are predicated off.
Settings alternate, each is run several times, and its fastest run counts, since other load only slows it
down. The targets on one core: 1.0 G per second with all checks, and 1.3 times that with none; near-linear
over cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from verify.check.matrix import filled_run
from verify.contract.discovery import find_contracts
from verify.contract.model import Contract
from verify.device.cpu import MULTIPROCESSORS
from verify.device.elf import read_program
from verify.device.interface import TOOLS, Job
from verify.device.program import ProgramOptions, machine_environment
from verify.device.session import harness_command
from verify.fixture.schema import Fixture
from verify.gate.prepare import prepare
from verify.toolchain.machine_build import machine_library
from verify.wire.pack import write_pack

SIZES = (
    (0, 100_000, "below 0.1 M"),
    (100_000, 1_000_000, "0.1 M to 1 M"),
    (1_000_000, 5_000_000, "1 M to 5 M"),
    (5_000_000, 1 << 62, "5 M and more"),
)
"""Thread-instructions of a launch, for ``--sizes``."""


@dataclass(frozen=True)
class Speed:
    """The result of one setting. wall, processor: seconds inside launches. instructions: thread-instructions.
    walls, sizes: seconds and thread-instructions of each launch, in order."""

    tools: tuple[str, ...]
    cores: int
    launches: int
    instructions: int
    wall: float
    processor: float
    walls: tuple[float, ...]
    sizes: tuple[int, ...]

    @property
    def rate(self) -> float:
        """Thread-instructions a second: of processor time on one core, which a busy machine does not change,
        by the wall on several."""
        seconds = self.processor if self.cores == 1 else self.wall
        return self.instructions / seconds if seconds else 0.0


def measure(job: Job, tools: tuple[str, ...], cores: int, architecture: str, needle: str) -> Speed:
    """Run the pack once; only kernels whose mangled name holds ``needle`` count."""
    with tempfile.TemporaryDirectory(prefix="verify-speed-") as scratch:
        folder = Path(scratch)
        timing = folder / "timing.txt"
        options = ProgramOptions(
            tools, architecture, threads=cores, log_file=folder / "report.txt", timing=timing
        )
        facts = read_program(job.binary)
        # As the CPU device runs the harness: shared memory holds a pattern at every block's start as it is.
        base = {**os.environ, "VERIFY_KEEP_SHARED": "1"}
        environment = machine_environment(machine_library(), options, folder, base, facts, "bench")
        done = subprocess.run(
            harness_command(job, job.runs, regions="memcheck" in tools),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"the harness ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
        rows = [line.split() for line in timing.read_text().splitlines()]
    own = [row for row in rows if needle in row[0]]
    wall, processor = (sum(float(row[column]) for row in own) for column in (1, 2))
    walls, sizes = tuple(float(row[1]) for row in own), tuple(int(row[3]) for row in own)
    return Speed(tools, cores, len(own), sum(sizes), wall, processor, walls, sizes)


def side_by_side(job: Job, tools: tuple[str, ...], cores: int, architecture: str, needle: str) -> float:
    """Thread-instructions per second of ``cores`` concurrent processes, one core each, on the whole pack.

    Shared resources (memory, caches, hyper-threads) slow these down too, so the ratio to one process is the
    scaling of a machine without any overhead of its own.
    """
    jobs = [replace(job, out=job.out.with_name(f"out-{number}")) for number in range(cores)]
    for one in jobs:
        one.out.mkdir(exist_ok=True)
    with ThreadPoolExecutor(cores) as pool:
        ended = list(pool.map(lambda one: measure(one, tools, 1, architecture, needle), jobs))
    return sum(one.instructions for one in ended) / max(one.wall for one in ended)


def prepared_job(kernel: str, words: str, architecture: str, folder: Path, batch: int = 1) -> Job:
    """One plain run of each case whose fixture's name contains ``words``, with ``batch`` times its rows."""
    (contract,) = find_contracts([kernel])
    ready = prepare(
        contract,
        lambda names: [name for name in names if words in name],
        architecture,
        MULTIPROCESSORS[architecture],
        lambda line: print(line, file=sys.stderr),
        changed=lambda fixture: grown(fixture, contract, batch),
    )
    runs = [filled_run(case, "nan") for cases in ready.cases.values() for case in cases.values()]
    if not runs:
        raise SystemExit(f"no fixture of {kernel} has {words!r} in its name")
    pack = write_pack(folder / "pack", runs)
    (folder / "out").mkdir()
    return Job(ready.build.binary, pack, [run.id for run in runs], folder / "out")


def grown(fixture: Fixture, contract: Contract, batch: int) -> Fixture:
    """A fixture with ``batch`` times its batch rows; lists, which have one entry per row, are repeated."""
    if batch == 1 or contract.batch is None:
        return fixture
    symbols = {
        name: value * batch if name == contract.batch or isinstance(value, list) else value
        for name, value in fixture.symbols.items()
    }
    return replace(fixture, symbols=symbols, edge="")


def show(speeds: Sequence[Speed]) -> None:
    """Print one line per setting, then the ratios."""
    print("checks   cores  launches   thread-instructions    wall s  processor s  G a second")
    for one in speeds:
        name = "all" if one.tools else "none"
        print(
            f"{name:<8}{one.cores:>6}{one.launches:>10}{one.instructions:>22,}"
            f"{one.wall:>10.3f}{one.processor:>13.3f}{one.rate / 1e9:>12.3f}"
        )
    single = {bool(one.tools): one for one in speeds if one.cores == 1}
    if len(single) == 2:
        print(f"none over all, on one core: {single[False].rate / single[True].rate:.2f}")
    for one in speeds:
        if one.cores > 1 and bool(one.tools) in single:
            scale = one.rate / single[bool(one.tools)].rate
            print(f"{one.cores} cores over 1, {'all' if one.tools else 'no'} checks: {scale:.2f}")


def show_sizes(runs: Sequence[Speed]) -> None:
    """The launches of all runs of one setting by their size, each by its fastest run: small ones are mostly
    overhead, and have few blocks to spread over cores."""
    fastest = [min(walls) for walls in zip(*(one.walls for one in runs), strict=True)]
    print(f"launches by size, {'all' if runs[0].tools else 'no'} checks, {runs[0].cores} cores:")
    print("thread-instructions  launches    wall s  G a second")
    for low, high, name in SIZES:
        chosen = [
            (wall, size) for wall, size in zip(fastest, runs[0].sizes, strict=True) if low <= size < high
        ]
        if chosen:
            wall, size = sum(wall for wall, _ in chosen), sum(size for _, size in chosen)
            print(f"{name:<19}{len(chosen):>10}{wall:>10.3f}{size / wall / 1e9:>12.3f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel", nargs="?", default="flash_decode")
    parser.add_argument(
        "--fixture", default="", metavar="WORDS", help="only fixtures with this in their name"
    )
    parser.add_argument("--arch", default="sm_90", choices=tuple(MULTIPROCESSORS))
    parser.add_argument("--cores", default=f"1,{os.cpu_count() or 1}", help="as 1,2,4")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="runs of each setting")
    parser.add_argument(
        "--batch", type=int, default=1, metavar="N", help="N times each fixture's batch rows: larger grids"
    )
    parser.add_argument(
        "--processes",
        action="store_true",
        help="also as many processes of one core side by side, which is all that the cores can give",
    )
    parser.add_argument("--sizes", action="store_true", help="also tell launches apart by their size")
    given = parser.parse_args()
    cores = sorted({int(word) for word in given.cores.split(",")})
    machine_library()
    with tempfile.TemporaryDirectory(prefix="verify-speed-") as scratch:
        job = prepared_job(given.kernel, given.fixture, given.arch, Path(scratch), given.batch)
        settings = [(tools, count) for tools in (TOOLS, ()) for count in cores]
        runs = [
            [measure(job, *setting, given.arch, given.kernel.split("_")[0]) for setting in settings]
            for _ in range(given.repeats)
        ]
        needle = given.kernel.split("_")[0]
        beside = {
            (tools, count): max(side_by_side(job, tools, count, given.arch, needle) for _ in range(3))
            for tools, count in settings
            if given.processes and count > 1
        }
    fastest = [max(same, key=lambda one: one.rate) for same in zip(*runs, strict=True)]
    show(fastest)
    for (tools, count), rate in beside.items():
        single = next(one.rate for one in fastest if one.tools == tools)
        name = "all" if tools else "no"
        print(f"{count} processes over 1, {name} checks: {rate / single:.2f} ({rate / 1e9:.3f} G a second)")
    if given.sizes:
        for same in zip(*runs, strict=True):
            show_sizes(same)


if __name__ == "__main__":
    main()
