"""-k and --check: a selection that picks too much or too little verifies the wrong thing."""

import pytest

from verify.gate.selection import SelectionError, select_checks, select_names, some_of

NAMES = ("tile", "tile-minus-1", "wrap-inside-tile", "ragged")


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        (None, NAMES),
        ("tile", ("tile",)),
        ("tile-minus", ("tile-minus-1",)),
        ("wrap or ragged", ("wrap-inside-tile", "ragged")),
        ("tile- or (wrap and not tile)", ("tile-minus-1",)),
        ("not tile", ("ragged",)),
        ("RAGGED", ("ragged",)),
    ],
)
def test_names(expression: str | None, chosen: tuple[str, ...]) -> None:
    """Fault: a full name also selects others, so that a repeat command repeats more than one case."""
    assert select_names(NAMES, expression) == chosen


@pytest.mark.parametrize(
    "expression", ["nothing", "(tile", "and", "tile )", "not", "(" * 5000, "not " * 5000]
)
def test_bad_expression_is_refused(expression: str) -> None:
    """Fault: an expression that selects nothing ends in a clean report."""
    with pytest.raises(SelectionError):
        select_names(NAMES, expression)


def test_unknown_check_is_refused() -> None:
    """Fault: a misspelt check counts as run."""
    with pytest.raises(SelectionError, match="memchek"):
        select_checks(["memchek"], ())
    assert select_checks(["poison", "compare"], ()) == ("compare", "poison")


def test_a_message_shows_few_names() -> None:
    """Fault: a misspelt fixture of a large suite fills the screen with all that there are."""
    names = [f"kernel/fixture-{n}" for n in range(50)]
    assert some_of(names[:3]) == "kernel/fixture-0, kernel/fixture-1, kernel/fixture-2"
    assert (
        some_of([*names, "other/wrap-inside"], "wrap-insid")
        == "other/wrap-inside and 50 more, see verify list"
    )
    assert some_of(names, "nothing like it").count(",") == 8
