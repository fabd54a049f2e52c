"""docs/reference/contract.md is what the docstrings say: every field, with a right example."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

import verify
from verify.contract import compared, entries, hypothesis, model, symbols
from verify.contract.consistency import contradictions
from verify.contract.field_types import wrong_types
from verify.oracle import tracked

ROOT = Path(__file__).parents[2]


def load_page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("contract_page", ROOT / "ci" / "contract_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


PAGE = load_page()
FIELDS = [(module, name, field) for module, name in PAGE.CLASSES for field in PAGE.fields_of(module, name)]
NAMES = {
    "np": np,
    "t": tracked,
    "mpf": mpf,
    "Path": Path,
    **{name: getattr(verify, name) for name in verify.__all__},
    "Effect": compared.Effect,
}
X, Y = verify.Buffer("x", "f32", ("rows", "columns")), verify.Buffer("y", "f32", ("rows",), "out")
OUTPUT = verify.Symbol("output", choices=(0, 1))
KERNEL = verify.Contract(
    name="k",
    source="k.cu",
    symbols=("rows", "columns", OUTPUT),
    buffers=(X, Y),
    entry=verify.Launcher("k_launch", ("x", "y", "rows", "stream")),
    reference=lambda case: {},
    error_model=lambda case: {},
    profiles=(verify.Profile("integers", lambda case, g: {}, "Nothing."),),
)
PLAN = verify.Plan("k_plan", "k_plan_result", ("tile", "num_splits"))


def within(value: Any) -> verify.Contract:
    """A contract that holds the value where its class belongs."""
    match value:
        case verify.Contract():
            return value
        case verify.Symbol():
            return dataclasses.replace(KERNEL, symbols=("rows", "columns", OUTPUT, value))
        case verify.DtypeChoice():
            return dataclasses.replace(KERNEL, buffers=(X, dataclasses.replace(Y, dtype=value)))
        case verify.Buffer():
            return dataclasses.replace(KERNEL, buffers=(value, Y))
        case verify.Launcher() | verify.Global():
            return dataclasses.replace(KERNEL, entry=value)
        case verify.Refusal():
            return dataclasses.replace(KERNEL, refusals=(value,))
        case verify.Profile():
            return dataclasses.replace(KERNEL, profiles=(value,))
        case verify.Plan():
            return dataclasses.replace(KERNEL, plan=value)
        case verify.Intermediate():
            return dataclasses.replace(KERNEL, intermediates=(value,))
        case verify.Hypothesis():
            return dataclasses.replace(KERNEL, hypotheses=(value,))
        case verify.KernelOracle():
            return dataclasses.replace(KERNEL, parity={"library": value})
    raise AssertionError(type(value))


BASES: dict[str, Any] = {
    "Contract": KERNEL,
    "Symbol": verify.Symbol("window"),
    "DtypeChoice": verify.DtypeChoice("output", ("bf16", "f32")),
    "Buffer": X,
    "Launcher": KERNEL.entry,
    "Global": verify.Global("k", ("rows",), (32,), ("x", "y")),
    "Refusal": verify.Refusal("no-rows"),
    "Profile": KERNEL.profiles[0],
    "Plan": PLAN,
    "Intermediate": verify.Intermediate("m", "x", "f32", ("rows",)),
    "KernelOracle": verify.KernelOracle("library_kernel"),
    "Hypothesis": verify.Hypothesis("zero", lambda case, seen: []),
    "Prediction": verify.Prediction("zeros", {}),
    "Effect": compared.Effect("dropped", 0, slice(0, 1), np.arange(1), np.ones((1, 1))),
}


def test_the_page_is_what_the_docstrings_say() -> None:
    """Fault: a field was changed and the page was not; its first line says how it is printed again."""
    assert (ROOT / "docs" / "reference" / "contract.md").read_text() == "\n".join(PAGE.page()) + "\n"


def test_every_class_of_the_language_is_on_the_page() -> None:
    """Fault: a class is exported, or reaches a contract's functions, that is not documented."""
    assert {name for _, name in PAGE.CLASSES} == {*verify.__all__, "Case", "Effect"}


@pytest.mark.parametrize(("module", "name"), PAGE.CLASSES, ids=[name for _, name in PAGE.CLASSES])
def test_the_fields_of_the_page_are_those_of_the_class(module: ModuleType, name: str) -> None:
    """Fault: a field is documented that there is not (Plan.call was), or one is not found in the source."""
    kind = getattr(module, name)
    assert [f.name for f in dataclasses.fields(kind)] == [f.name for f in PAGE.fields_of(module, name)]


@pytest.mark.parametrize(
    ("module", "name", "field"), FIELDS, ids=[f"{name}.{field.name}" for _, name, field in FIELDS]
)
def test_every_field_has_a_description_and_a_right_example(module: ModuleType, name: str, field: Any) -> None:
    """Fault: a user guesses what a field takes, or copies an example that the suite refuses."""
    assert field.text.endswith(".")
    if name == "Case":
        assert field.example.startswith("case.")
        return
    changes = eval(f"dict({field.example})", dict(NAMES))
    assert list(changes) == [field.name]
    base = BASES[name]
    if isinstance(base, verify.Launcher) and field.name == "struct":
        base = dataclasses.replace(base, args={"x": "x", "y": "y"})
    value = dataclasses.replace(base, **changes)
    if isinstance(value, compared.Effect | verify.Prediction):
        return
    contract = within(value)
    assert not list(wrong_types(contract, Path("k")))
    assert not list(contradictions(contract, Path("k")))


def test_modules_of_the_page_define_their_classes() -> None:
    """Fault: a class that is imported where it was, and defined elsewhere, has no fields on the page."""
    for module, name in PAGE.CLASSES:
        assert getattr(module, name).__module__ == module.__name__
        assert module in (compared, entries, hypothesis, model, symbols)
