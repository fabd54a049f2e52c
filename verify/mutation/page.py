"""The kill matrix as a page of Markdown, for docs/ or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from verify.mutation.edit import diff
from verify.mutation.kill_matrix import KillMatrix, Score
from verify.mutation.kinds import NOT_PRESENT, Kind
from verify.mutation.mutant import Fate, Mutant, Result

_APART = {
    Fate.UNDECIDED: "Undecided",
    Fate.TIMED_OUT: "Timed out without a deadlock report",
    Fate.EXPLAINED: "Equivalent by reasoning",
    Fate.NOT_VISIBLE: "Visible only on another device",
}


def page(matrix: KillMatrix, sources: Mapping[str, str], command: str) -> str:
    """The page. sources: the right kernels' sources by kernel. command: what repeats it."""
    return "\n".join(_lines(matrix, sources, command)) + "\n"


def _lines(matrix: KillMatrix, sources: Mapping[str, str], command: str) -> Iterator[str]:
    yield "# Kill matrix"
    yield ""
    yield f"{matrix.total} planted faults were killed on the {matrix.device} device. To repeat:"
    yield ""
    yield f"    {command}"
    yield ""
    yield "A mutant is killed if a check of a full run, over all fixtures, reports an error."
    yield ""
    yield from _table(("result", "mutants"), [(str(fate), str(n)) for fate, n in matrix.fates.items()])
    yield from _section("Kernels", _scores("kernel", matrix.by_kernel))
    kinds = [(s.name, Kind.named(s.name).sentence, str(s)) for s in matrix.by_kind]
    shown = {s.name for s in matrix.by_kind}
    kinds += [
        (str(k), k.sentence, f"not present: {w}") for k, w in NOT_PRESENT.items() if str(k) not in shown
    ]
    yield from _section("Kinds", _table(("kind", "description", "killed"), kinds))
    heads = ("check", "first", "all", "only", "expected")
    rows = [
        (r.check, str(r.first), _number(r.every), _number(r.alone), str(r.expected)) for r in matrix.by_check
    ]
    yield from _section("Checks", _table(heads, rows))
    if matrix.by_rule:
        yield from _section("The usual tolerances on the same outputs", _scores("rule", matrix.by_rule))
    if matrix.by_operator:
        yield from _section("Operators", _scores("operator", matrix.by_operator))
    for fate, title in _APART.items():
        if found := matrix.of(fate):
            listed = [(m.kernel, m.name, m.fault, r.reason) for m, r in found]
            yield from _section(title, _table(("kernel", "mutant", "fault", "reason"), listed))
    if survivors := matrix.of(Fate.SURVIVED):
        yield from _section("Survivors", _survivors(survivors, sources))


def _number(count: int | None) -> str:
    return "-" if count is None else str(count)


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield from lines


def _scores(name: str, scores: Sequence[Score]) -> Iterator[str]:
    yield from _table((name, "killed"), [(s.name, str(s)) for s in scores])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |"
    yield ""


def _survivors(found: Sequence[tuple[Mutant, Result]], sources: Mapping[str, str]) -> Iterator[str]:
    for mutant, _ in found:
        yield f"{mutant.kernel} `{mutant.name}`: {mutant.fault}"
        yield ""
        yield "```diff"
        yield from diff(sources[mutant.kernel], mutant.source, f"{mutant.kernel}.cu").splitlines()[2:]
        yield "```"
        yield ""
