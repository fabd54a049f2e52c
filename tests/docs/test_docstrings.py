"""Docstrings explain fields and parameters that there are: ``name: meaning``, at the head of a sentence."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_DOCUMENTED = re.compile(r"(?:^|(?<=[.;] )|(?<=\n))([a-z_]+(?:(?:, | / )[a-z_]+)*): ")
Documented = ast.ClassDef | ast.FunctionDef
FILES = sorted((ROOT / "verify").rglob("*.py"))


def documented(node: Documented) -> set[str]:
    """Names that the docstring explains."""
    text = ast.get_docstring(node) or ""
    return {name for names in _DOCUMENTED.findall(text) for name in re.split(r", | / ", names)}


def known(node: Documented) -> set[str]:
    """The fields and attributes of a class, the parameters of a function."""
    if isinstance(node, ast.FunctionDef):
        of = node.args
        variadic = [argument for argument in (of.vararg, of.kwarg) if argument is not None]
        return {argument.arg for argument in (*of.posonlyargs, *of.args, *of.kwonlyargs, *variadic)}
    fields = (statement.target for statement in node.body if isinstance(statement, ast.AnnAssign))
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Attribute))
    attributes = (part.attr for part in parts if ast.unparse(part.value) == "self")
    return {*(field.id for field in fields if isinstance(field, ast.Name)), *attributes, *made_from(node)}


def made_from(node: ast.ClassDef) -> set[str]:
    """The parameters of a class's own ``__init__``."""
    methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
    return {name for method in methods if method.name == "__init__" for name in known(method)}


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_a_docstring_explains_names_that_are_there(file: Path) -> None:
    """Fault: a reader gives or reads a name that was renamed or never was."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, Documented)]
    wrong = {node.name: documented(node) - known(node) for node in nodes}
    assert not {name: names for name, names in wrong.items() if names}


@pytest.mark.parametrize("head", ["class C:", "def f(a: int) -> None:"])
def test_documented_names_are_read_from_a_docstring(head: str) -> None:
    """Fault: the rule above reads no docstring, and so refuses none."""
    (node,) = ast.parse(f'{head}\n    """One.\n\n    a: first. b, c: two more.\n    d / e: others."""').body
    assert isinstance(node, Documented)
    assert documented(node) == {"a", "b", "c", "d", "e"}
    assert known(node) == ({"a"} if isinstance(node, ast.FunctionDef) else set())
