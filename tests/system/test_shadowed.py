"""Modules of the standard library that a file of the same name shadows."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from verify.system.shadowed import shadowed


def test_a_shadowed_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: an import error is blamed on the installation although a user's json.py is the cause."""
    fake = ModuleType("json")
    fake.__file__ = "/home/user/json.py"
    monkeypatch.setitem(sys.modules, "json", fake)
    assert shadowed() == "json is /home/user/json.py, not Python's own"


def test_the_standard_library_does_not_shadow_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: built-in modules, which have no file, and packages of another name are not reported."""
    monkeypatch.setitem(sys.modules, "json_of_a_user", ModuleType("json_of_a_user"))
    assert shadowed() == ""
