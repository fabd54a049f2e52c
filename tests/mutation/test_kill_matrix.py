"""Is the kill matrix counted right, and what does a campaign's exit code say?"""

from __future__ import annotations

import pytest

from verify.mutation.campaign import Campaign
from verify.mutation.kill_matrix import KillMatrix, Score
from verify.mutation.kinds import Kind
from verify.mutation.mutant import Fate, Kill, Mutant, Origin, Result
from verify.mutation.page import page
from verify.mutation.wanted import sampled
from verify.system.exit_code import ExitCode


def mutant(name: str, kind: Kind = Kind.RACE, **how: object) -> Mutant:
    return Mutant("k", name, kind, "A fault.", f"{name}\n", 1, Origin.CATALOGUE, **how)  # type: ignore[arg-type]


def result(name: str, fate: Fate, *killers: str, **how: object) -> Result:
    kills = tuple(Kill(check, "kind", "f/p", "seen", "sm_90") for check in killers)
    return Result("k", name, fate, kills, **how)  # type: ignore[arg-type]


def matrix(*pairs: tuple[Mutant, Result], every: bool = False) -> KillMatrix:
    return KillMatrix(Campaign(tuple(m for m, _ in pairs), tuple(r for _, r in pairs), 0, 1.0), "cpu", every)


KILLED = (
    mutant("a", checks=("compare",)),
    result("a", Fate.KILLED, "racecheck", "compare", caught={"NMSE 5e-4": True}),
)
ALONE = (mutant("b", Kind.RING), result("b", Fate.KILLED, "compare", caught={"NMSE 5e-4": False}))
LEFT = (mutant("c", Kind.RING), result("c", Fate.SURVIVED, caught={"NMSE 5e-4": False}))
SAME = (mutant("d"), result("d", Fate.EQUIVALENT))


def test_counts() -> None:
    """Fault: equivalents lower the score, or a check's first kills are mixed up with all of its kills."""
    counted = matrix(KILLED, ALONE, LEFT, SAME, every=True)
    assert counted.total == Score("all", 2, 3) and str(counted.total) == "2 of 3 (66.7%)"
    assert counted.by_kind == [Score("ring", 1, 2), Score("race", 1, 1)]
    compare, race = counted.by_check
    assert (compare.check, compare.first, compare.every, compare.alone, compare.expected) == (
        "compare",
        1,
        2,
        1,
        1,
    )
    assert (race.check, race.first, race.every, race.alone, race.expected) == ("racecheck", 1, 1, 0, 0)
    rules = {s.name: (s.killed, s.of) for s in counted.by_rule}
    assert rules["NMSE 5e-4"] == (1, 3) and rules["the four tools alone"] == (1, 3)
    assert rules["all checks"] == (2, 3)


def test_oracles_that_were_not_run_are_not_counted() -> None:
    """Fault: a matrix of first killers shows how many each check would have reported."""
    counted = matrix(KILLED, ALONE)
    assert [row.every for row in counted.by_check] == [None, None] and not counted.by_rule


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (Fate.KILLED, ExitCode.CLEAN),
        (Fate.SURVIVED, ExitCode.FINDINGS),
        (Fate.TIMED_OUT, ExitCode.FINDINGS),
        (Fate.UNDECIDED, ExitCode.NOT_VERIFIED),
        (Fate.NOT_COMPILED, ExitCode.NOT_VERIFIED),
        (Fate.EQUIVALENT, ExitCode.NOT_VERIFIED),
    ],
)
def test_exit_code(fate: Fate, code: ExitCode) -> None:
    """Fault: a survivor, or a campaign in which nothing was tried, ends with 0."""
    assert (
        matrix((mutant("a"), result("a", fate, *(["compare"] if fate is Fate.KILLED else [])))).exit_code
        is code
    )


def test_a_silent_check_is_a_finding() -> None:
    """Fault: a mutant that one of two promised checks misses counts as all right."""
    assert (
        matrix((mutant("a"), result("a", Fate.KILLED, "compare", silent=("poison",)))).exit_code
        is ExitCode.FINDINGS
    )


def test_page() -> None:
    """Fault: a survivor is not on the page, or a bar in a fault breaks its table."""
    explained = (mutant("e", equivalent="a | b"), result("e", Fate.EXPLAINED, reason="a | b"))
    text = page(matrix(KILLED, LEFT, explained, every=True), {"k": "right\n"}, "verify mutate k")
    assert "1 of 2 (50.0%)" in text and "    verify mutate k" in text
    assert "-right\n+c" in text and r"a \| b" in text
    assert all(line.count("|") - line.count(r"\|") >= 2 for line in text.splitlines() if line.startswith("|"))


def test_a_sample_touches_every_kind_first() -> None:
    """Fault: a sample of as many as there are kinds leaves one out, or another run draws others."""
    every = [mutant(f"{kind.name}-{n}", kind) for kind in (Kind.RACE, Kind.RING, Kind.WARP) for n in range(5)]
    drawn = sampled(every, 3)
    assert {m.kind for m in drawn} == {Kind.RACE, Kind.RING, Kind.WARP}
    assert drawn == sampled(every, 3) and len(sampled(every, 99)) == len(every)
