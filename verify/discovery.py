"""Finds contracts: ours in the package, a user's beside the kernel. Both are ``*_contract.py`` files."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from verify.consistency import contradictions
from verify.contract import Contract
from verify.field_types import wrong_types
from verify.resources import resource_folder

SUFFIX = "_contract.py"
_SKIPPED = {"node_modules", "site-packages", "__pycache__", "build", "dist"}
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class ContractError(ValueError):
    """A contract that cannot be found or loaded; the message names the file and what is wrong."""


def own_contract_files() -> tuple[Path, ...]:
    """The contracts that ship with the suite."""
    return tuple(sorted((Path(__file__).parent / "contracts").glob(f"*{SUFFIX}")))


def contract_files_below(folder: Path) -> Iterator[Path]:
    """``*_contract.py`` files below a folder, hidden folders and environments left out, in sorted order."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(
            f
            for f in folders
            if not f.startswith(".") and f not in _SKIPPED and not (Path(root) / f / "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            if name.endswith(SUFFIX):
                yield Path(root) / name


def load_contract(path: Path) -> Contract:
    """The ``CONTRACT`` of a file, with its directory set and its names checked. Raises ContractError."""
    path = path.resolve()
    module_name = f"verify_contract_{path.stem}_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ContractError(f"{path}: is not a contract file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ContractError(f"{path}: {type(error).__name__}: {error}") from error
    contract = getattr(module, "CONTRACT", None)
    if not isinstance(contract, Contract):
        raise ContractError(f"{path}: CONTRACT: the file must define it as a verify.Contract")
    contract = dataclasses.replace(contract, directory=path.parent)
    check_contract(contract, path)
    return contract


def check_contract(contract: Contract, path: Path) -> None:
    """Reject a contract that contradicts itself, with file and field in one line. Raises ContractError."""
    for line in wrong_types(contract, path):
        raise ContractError(line)
    if not _NAME.fullmatch(contract.name):
        raise ContractError(f"{path}: name: must be a lower-case identifier, is {contract.name!r}")
    buffers = [b.name for b in contract.buffers]
    names = [*buffers, *(s.name for s in contract.declared_symbols)]
    if contract.plan is not None:
        names += [f for f in contract.plan.fields if contract.symbol(f) is None]
    for name in names:
        if not name.isidentifier():
            raise ContractError(f"{path}: {name!r}: is not an identifier")
        if names.count(name) > 1:
            raise ContractError(f"{path}: {name}: is declared twice among symbols, buffers and plan fields")
    if not any(b.role in ("out", "inout") for b in contract.buffers):
        raise ContractError(f"{path}: buffers: none has the role 'out' or 'inout'")
    if bool(contract.intermediates) != (contract.observe is not None):
        raise ContractError(f"{path}: observe: goes with intermediates, give both or neither")
    for intermediate in contract.intermediates:
        if intermediate.buffer not in buffers:
            raise ContractError(f"{path}: {intermediate.name}: {intermediate.buffer!r} is not a buffer")
    if contract.batch is not None and contract.symbol(contract.batch) is None:
        raise ContractError(f"{path}: batch: {contract.batch!r} is not a symbol")
    for line in contradictions(contract, path):
        raise ContractError(line)
    if not source_file(contract).is_file():
        raise ContractError(f"{path}: source: there is no {contract.source} beside the contract or in cuda/")


def source_file(contract: Contract) -> Path:
    """The production source: beside the contract, or among the suite's own kernels."""
    beside = contract.directory / contract.source
    return beside if beside.is_file() else resource_folder("cuda") / contract.source


def fixture_file(contract: Contract) -> Path:
    """The fixture file: beside the contract, or among the suite's own."""
    beside = contract.directory / f"{contract.name}.toml"
    own = resource_folder("fixtures") / f"{contract.name}.toml"
    return own if own.is_file() and not beside.is_file() else beside


def find_contracts(kernels: Sequence[str] = (), folders: Iterable[Path] = ()) -> tuple[Contract, ...]:
    """Contracts by name, contract file, kernel file, or folder; with none named, ours and those below
    ``folders``.

    Raises ContractError for a name that is not there, listing those that are.
    """
    if not kernels:
        files = {p.resolve(): None for p in own_contract_files()}
        for folder in folders:
            files.update({p.resolve(): None for p in contract_files_below(folder)})
        return tuple(map(load_contract, files))
    found: list[Contract] = []
    for kernel in kernels:
        found.extend(_contracts_named(kernel, folders))
    return tuple(found)


def _contracts_named(kernel: str, folders: Iterable[Path]) -> list[Contract]:
    if not kernel:
        raise ContractError("a kernel's name is empty: leave it out for all of them")
    path = Path(kernel)
    if path.is_dir():
        contracts = [load_contract(p) for p in contract_files_below(path)]
        if not contracts:
            raise ContractError(f"{path}: there is no *{SUFFIX} below this folder")
        return contracts
    if path.is_file():
        if path.name.endswith(SUFFIX):
            return [load_contract(path)]
        beside = path.with_name(f"{path.stem}{SUFFIX}")
        if path.suffix == ".cu" and beside.is_file():
            return [load_contract(beside)]
        if beside.is_file():
            raise ContractError(f"{path}: is neither a contract nor a .cu; name {beside.name}")
        raise ContractError(f"{path}: has no contract; write {beside.name} beside it")
    candidates = [*own_contract_files(), *(p for f in folders for p in contract_files_below(f))]
    for candidate in candidates:
        if candidate.name == f"{kernel}{SUFFIX}":
            return [load_contract(candidate)]
    known = ", ".join(dict.fromkeys(p.name.removesuffix(SUFFIX) for p in candidates)) or "none"
    raise ContractError(f"{kernel}: there is no such kernel or file (known: {known})")
