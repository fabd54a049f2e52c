"""A campaign over the example: in parallel, kept as it goes, resumed after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from verify.mutation.journal import FILE, Journal
from verify.mutation.kinds import Kind
from verify.mutation.mutant import Fate, Kill, Mutant, Origin, Result

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/row_softmax"
SAMPLE = "12"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "verify", "mutate", *map(str, arguments), "--device", "cpu"]


def ran(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of a command."""
    done = subprocess.run(
        [*command(*arguments), "--json", "-q"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=500,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def rows(folder: Path) -> list[dict[str, Any]]:
    """The whole rows of a journal."""
    lines = (folder / FILE).read_text().splitlines() if (folder / FILE).exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def test_the_example_is_mutated_and_resumed_after_a_kill(tmp_path: Path) -> None:
    """Fault: a killed campaign loses results or tries a mutant twice; a mutant of a right example
    survives."""
    results, kernel = tmp_path / "results", EXAMPLE / "row_softmax.cu"
    asked = (kernel, "--operators", "--sample", SAMPLE, "--arch", "sm_90", "--results", results)
    started = time.monotonic()
    with subprocess.Popen(
        [*command(*asked), "-q"], cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        while sum("mutant" in row for row in rows(results)) < 3:
            assert process.poll() is None and time.monotonic() - started < 300
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    before = Counter(row["key"] for row in rows(results))
    code, matrix = ran(*asked)
    after = Counter(row["key"] for row in rows(results))
    assert set(after.values()) == {1} and before.keys() <= after.keys()
    assert sum("mutant" in row for row in rows(results)) == int(SAMPLE) == len(matrix["mutants"])
    assert matrix["known"] == sum(1 for row in before) - 1 >= 3  # all but the row of the right kernel
    fates = Counter(m["fate"] for m in matrix["mutants"])
    assert fates["killed"] >= 8 and not fates["survived"] and not fates["undecided"]
    assert code == 0


def test_an_unclean_kernel_is_not_mutated(tmp_path: Path) -> None:
    """Fault: every mutant of a wrong kernel counts as killed, by what was wrong before."""
    for file in EXAMPLE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    source = tmp_path / "row_softmax.cu"
    source.write_text(source.read_text().replace("value + other", "value - other"))
    arguments = (source, "--sample", "1", "--arch", "sm_90", "--results", tmp_path / "results", "-q")
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=ROOT, check=False, timeout=500
    )
    assert done.returncode == 3 and "the right kernel is not clean" in done.stderr


def test_nothing_to_try_is_no_success(tmp_path: Path) -> None:
    """Fault: a campaign that selects no mutant ends with 0."""
    arguments = (EXAMPLE / "row_softmax.cu", "--catalogue", "--results", tmp_path, "-q")
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=ROOT, check=False, timeout=100
    )
    assert done.returncode == 2 and "there is no mutant" in done.stderr


MUTANT = Mutant("k", "m", Kind.RACE, "A fault.", "int x;", 1, Origin.OPERATOR)
RESULT = Result(
    "k", "m", Fate.KILLED, (Kill("compare", "hang", "f/p", "seen", "sm_90"),), ("poison",), {"r": True}
)


@pytest.mark.parametrize("torn", ['{"key": "b", "fa', '{"key": "b"}', "[]", "\x00\x00"])
def test_half_a_line_is_no_result(tmp_path: Path, torn: str) -> None:
    """Fault: a line that a kill has cut short ends the next campaign, or takes the line behind it along."""
    Journal(tmp_path).write("a", RESULT)
    with (tmp_path / FILE).open("a") as file:
        file.write(torn)
    Journal(tmp_path).write("c", RESULT)
    journal = Journal(tmp_path)
    assert journal.result("a", MUTANT) == journal.result("c", MUTANT) == RESULT
    assert journal.result("b", MUTANT) is None and not journal.is_clean("a")
