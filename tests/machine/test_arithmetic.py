"""Arithmetic against models in Python's integers and fractions, on operands that nobody recorded.

The recorded answers say what the hardware does with certain operands, the models what PTX defines for all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.machine.conformance.answers import Recorded, read_answers
from tests.machine.conformance.carry_forms import carry_forms
from tests.machine.conformance.compare_forms import compare_forms
from tests.machine.conformance.compare_models import choice_model, compare_model
from tests.machine.conformance.convert_forms import convert_forms
from tests.machine.conformance.float_models import conversion_model, float_model
from tests.machine.conformance.forms import Form, bit_forms, float_forms, half_forms, integer_forms, width_of
from tests.machine.conformance.integer_models import bit_model, integer_model
from tests.machine.conformance.narrow_models import narrow_model
from tests.machine.conformance.operands import edges, operand_sets, pack, random_value
from tests.machine.conformance.pair_forms import bounded_forms, pair_forms
from tests.machine.conformance.plan import PLANNED, Entry, write_entries
from tests.machine.conformance.video_forms import EXPANDED_OTHERWISE, video_forms
from tests.machine.conformance.video_models import video_model
from tests.machine.test_conformance import run

COUNT = 128
ELEMENT = {2: np.uint16, 4: np.uint32, 8: np.uint64}
FAMILIES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "integer": (integer_forms, integer_model),
    "carry": (carry_forms, integer_model),
    "bits": (bit_forms, bit_model),
    "float": (float_forms, float_model),
    "half": (half_forms, float_model),
    "convert": (convert_forms, conversion_model),
    "narrow": (convert_forms, narrow_model),
    "compare": (compare_forms, compare_model),
    "select": (compare_forms, choice_model),
    "sign": (float_forms, choice_model),
    "half sign": (half_forms, choice_model),
    "pair": (pair_forms, compare_model),
    "bounded": (bounded_forms, float_model),
    "video": (video_forms, video_model),
}
# Forms that must have a model: fewer mean that a name was not understood.
LEAST = {"integer": 110, "carry": 110, "bits": 75, "float": 125, "half": 40, "convert": 500}
LEAST |= {
    "narrow": 55,
    "compare": 350,
    "select": 35,
    "sign": 35,
    "half sign": 60,
    "pair": 130,
    "video": 820,
    "bounded": 8,
}


def modelled(family: str) -> list[tuple[Form, Callable[..., int]]]:
    forms, model = FAMILIES[family]
    return [(form, f) for form in forms() if (f := model(form.key)) is not None]


def types_of(form: Form) -> tuple[str, ...]:
    """Of the operands as they lie in memory: a predicate is bit 0 of a word."""
    return tuple("u32" if t == "pred" else t for t in form.operands)


def draw(form: Form) -> list[list[int]]:
    """Edge values and random bits in any combination, other ones for each form."""
    source = random.Random("models:" + form.key)
    types = types_of(form)
    sized = {t: mask for t in types for mask in [(1 << 8 * width_of(t)) - 1]}

    def one(t: str) -> int:
        edge = source.random() < 0.3
        return (source.choice(edges(t)) if edge else random_value(t, source)) & sized[t]

    return [[one(t) for _ in range(COUNT)] for t in types]


def wrong(form: Form, model: Callable[..., int], operands: list[list[int]], got: np.ndarray) -> str:
    """The first result that differs from the model's, of at most 400; empty when none does."""
    for row, answer in zip(zip(*operands, strict=True), got[:400].tolist(), strict=False):
        if (expected := model(*row)) is not None and expected != answer:
            return f"{form.key}({', '.join(map(hex, row))}) gave {answer:#x}, not {expected:#x}"
    return ""


@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_what_the_model_computes(family: str, tmp_path: Path) -> None:
    """Fault: a wrong upper half of a product, a lost carry, a rounding or a flush at the wrong place."""
    chosen = modelled(family)
    assert len(chosen) >= LEAST[family]
    operands = [draw(form) for form, _ in chosen]
    work: list[tuple[Entry, list[bytes]]] = []
    for (form, _), sets in zip(chosen, operands, strict=True):
        sized = Form(**{**form.__dict__, "count": COUNT, "name": form.key})
        work.append(
            (sized, [pack(values, width_of(t)) for values, t in zip(sets, form.operands, strict=True)])
        )
    items = write_entries(tmp_path, "sm_90", work)
    data = run(tmp_path)
    differences = []
    for (form, model), sets, item in zip(chosen, operands, items, strict=True):
        got = np.frombuffer(data, ELEMENT[width_of(form.d)], COUNT, item.out_offset)
        differences.append(wrong(form, model, sets, got))
    assert not any(differences), "\n".join(filter(None, differences))


@cache
def recorded() -> dict[str, Recorded]:
    """All that the hardware has answered; a family here takes its forms from one or several there."""
    return {key: form for family in PLANNED for key, form in read_answers(family).forms.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_models_are_right_on_the_hardware(family: str) -> None:
    """Fault: a model repeats a mistake of the machine; it is compared with the recorded answers."""
    answers = recorded()
    differences = []
    for form, model in modelled(family):
        if form.key not in answers:
            continue
        got = np.frombuffer(answers[form.key].answer, ELEMENT[width_of(form.d)])
        operands = operand_sets(types_of(form), form.count, form.key)
        masked = [
            [v & ((1 << 8 * width_of(t)) - 1) for v in values]
            for values, t in zip(operands, form.operands, strict=True)
        ]
        difference = wrong(form, model, masked, got)
        if EXPANDED_OTHERWISE.fullmatch(form.key):
            difference = "" if difference else f"{form.key} is what PTX defines: compare it with the hardware"
        differences.append(difference)
    assert not any(differences), "\n".join(filter(None, differences))
