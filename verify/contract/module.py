"""Loads a contract's file as a private module that can import the files beside it.

Each load creates a package of its own whose path is the contract's folder, and imports in that folder's code
look there first. So two folders may each have a ``shapes.py``, and no other import ever finds one. Bytecode
is neither read nor written: Python would compare it with the source by seconds and size alone.
"""

from __future__ import annotations

import builtins
import importlib
import itertools
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from verify.system.interpreter import CONTRACT_MODULES, Interpreter

_count = itertools.count()
_loaded: set[str] = set()
_undisturbed: list[Interpreter] = []
"""The process as it was before the first contract."""


def load_module(path: Path) -> ModuleType:
    """Load a file as a module. Its exceptions propagate; its changes to the interpreter are undone."""
    package = ModuleType(f"{CONTRACT_MODULES}{next(_count)}")
    package.__path__ = [str(path.parent)]
    sys.modules[package.__name__] = package
    name = f"{package.__name__}.{path.stem}"
    loader = _Loader(name, str(path))
    spec = spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    paths, modules = list(sys.path), set(sys.modules)
    before = Interpreter()
    _undisturbed[:] = _undisturbed or [before]
    try:
        loader.exec_module(module)
    finally:
        before.restore()
        _forget(paths, modules)
    return module


def disturbed() -> list[str]:
    """Undo what contracts' functions have changed in the interpreter since loading; returns what it was."""
    return [what for before in _undisturbed for what in before.explain()]


def is_contract_code(file: str) -> bool:
    """Whether a source file is a contract, or was imported from a contract's folder."""
    return file in _loaded or file.endswith("_contract.py")


def _forget(paths: list[str], modules: set[str]) -> None:
    """Restore ``sys.path``, and unload the modules that a contract imported through its additions to it."""
    added = tuple(str(Path(p).absolute()) for p in sys.path if p not in paths)
    sys.path[:] = paths
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if added and not name.startswith(CONTRACT_MODULES) and file.startswith(added):
            del sys.modules[name]


class _Loader(SourceFileLoader):
    """Gives a module an ``import`` that searches its contract's folder first."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        _loaded.add(self.path)
        package = module.__name__.partition(".")[0]
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import_for(package)}
        super().exec_module(module)


class _Finder:
    """Finds the modules of contracts' packages."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name.startswith(CONTRACT_MODULES) else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


sys.meta_path.insert(0, _Finder)


def _import_for(package: str) -> Callable[..., ModuleType]:
    folder = Path(sys.modules[package].__path__[0])

    def import_(
        name: str,
        globals_: Any = None,
        locals_: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level or not _is_beside(folder, name.partition(".")[0]):
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        whole = f"{package}.{name}"
        if fromlist:
            return builtins.__import__(whole, globals_, locals_, fromlist, 0)
        importlib.import_module(whole)
        return sys.modules[f"{package}.{name.partition('.')[0]}"]

    return import_


def _is_beside(folder: Path, name: str) -> bool:
    if name == "verify":
        return False
    if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
        return True
    return (folder / name).is_dir() and any((folder / name).glob("*.py")) and find_spec(name) is None
