"""What reaches the rendered harness: names of a strict grammar, slots by number, never a value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.harness.guarded_kernel import CONTRACT as GUARDED
from verify.contract.entries import Global, Launcher
from verify.contract.model import Buffer, Contract, Plan
from verify.contract.slots import ArgumentError, slots_of
from verify.harness.render import RenderError, render, takes_stream, template_id


def contract(entry: Any, **changes: Any) -> Contract:
    base = Contract(
        name="plain",
        source="plain.cu",
        symbols=("n",),
        buffers=(Buffer("x", "f32", ("n",)), Buffer("y", "f32", ("n",), role="out")),
        entry=entry,
        reference=lambda case: {},
        error_model=lambda case: {},
    )
    return replace(base, **changes)


@pytest.mark.parametrize(
    "name",
    [
        "f",
        "ns::f",
        "f<float>",
        "f<float, 256>",
        "a::b<ns::t<4>, unsigned char, -1>",
        "f<float*>",
        "f<int const*, 2u>",
    ],
)
def test_function_names_of_cpp_are_taken(name: str) -> None:
    """Fault: a grammar that is too narrow for ordinary templates."""
    assert template_id(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "f()",
        "f; system(0)",
        "f<float",
        "f<>",
        "f<float>>",
        "::f",
        "f::",
        "f<1+1>",
        'f<"x">',
        "f g",
        "f<float>g",
        "f\n#define x",
        "9f",
        "f<a,>",
        "f//",
        "f<sizeof(int)>",
    ],
)
def test_anything_else_is_refused(name: str) -> None:
    """Fault: code that a contract's spelling would bring into the harness."""
    with pytest.raises(RenderError, match="plain"):
        render(contract(Global(name, ("n",), (32,), ("x", "y"))))


@pytest.mark.parametrize(
    "changes",
    [
        {"source": 'a".cu'},
        {"source": "a\n.cu"},
        {"name": "a b"},
        {"plan": Plan("p(", "r", ("a",), ())},
        {"plan": Plan("p", "r;", ("a",), ())},
        {"plan": Plan("p", "r", ("a.b()",), ())},
        {"plan": Plan("p", "r", ("a",))},
        {"entry": Global("f", (), (32,), ("x",))},
        {"entry": Global("f", ("n",), (1, 1, 1, 1), ("x",))},
        {"entry": Global("f", ("n",), (1,), ("stream",))},
        {"entry": Launcher("f", {"a[0]": "x"}, struct="s")},
        {"entry": Launcher("f", ("x",), struct="s")},
        {"entry": Launcher("f", ("x",), struct="s{}")},
    ],
)
def test_other_fields_are_checked_too(changes: dict[str, Any]) -> None:
    """Fault: a field of the contract that is not looked at."""
    given = {"entry": Global("f", ("n",), (32,), ("x", "y")), **changes}
    with pytest.raises(RenderError, match=r"plain|a b"):
        render(contract(**given))


def test_bytes_of_an_unknown_buffer_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"bytes\(z\)"):
        render(contract(Launcher("f", ("x", "bytes(z)"))))


def test_arguments_keep_their_order_and_places() -> None:
    """Fault: slots numbered differently for the harness and for the case file."""
    plain = contract(Launcher("f", ("y", "n + 1", "bytes(x)", "n", "stream", "n + 1")))
    assert slots_of(plain).expressions == ("n + 1", "n")
    assert "f(a.pointer(1), a.value(0), a.bytes(0), a.value(1), stream, a.value(0))" in render(plain)


def test_a_sequence_stops_at_its_first_error() -> None:
    """Fault: a second launch on what a failed first one left."""
    text = render(contract((Launcher("f", ("x", "stream")), Global("g<2>", ("n",), (32, 2), ("y",), "4*n"))))
    assert text.count("if (status != cudaSuccess) return status;") == 3
    assert "g<2><<<grid, block, shared, stream>>>(a.pointer(1));" in text


def test_an_entry_without_a_stream_is_known() -> None:
    """Fault: a graph capture of a launcher that cannot be captured."""
    assert not takes_stream(contract(Launcher("f", ("x",))))
    assert takes_stream(contract(Launcher("f", ("x", "stream"))))
    assert takes_stream(GUARDED)


def test_a_fixture_changes_nothing_in_the_source() -> None:
    """Fault: a value that gets into the source, so that a new fixture would need a new build."""
    assert "100" not in render(GUARDED)
    assert render(GUARDED) == render(replace(GUARDED, symbols=GUARDED.symbols))
