"""Finds contracts: ours in the package, users' beside their kernels. Both are ``*_contract.py`` files."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from verify.contract.consistency import contradictions
from verify.contract.field_types import wrong_types
from verify.contract.model import Contract
from verify.contract.module import load_module
from verify.system.resources import resource_folder

SUFFIX = "_contract.py"
_SKIPPED = {"node_modules", "site-packages", "__pycache__"}
_OWN = (Path(__file__).parents[1] / "contracts").resolve()
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class ContractError(ValueError):
    """A contract cannot be found or loaded; the message names the file and the error."""


def own_contract_files() -> tuple[Path, ...]:
    """The contracts that ship with the suite."""
    return tuple(sorted(_OWN.glob(f"*{SUFFIX}")))


def contract_files_below(folder: Path) -> Iterator[Path]:
    """``*_contract.py`` files below a folder, without hidden folders and virtual environments.

    Each folder once, in sorted order; folders reached only through links come last.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [Path(folder)]
    while waiting:
        links: list[Path] = []
        for start in waiting:
            for root, folders, files in os.walk(start):
                at = Path(root)
                status = at.stat()
                if (status.st_dev, status.st_ino) in seen:
                    folders.clear()
                    continue
                seen.add((status.st_dev, status.st_ino))
                folders[:] = sorted(f for f in folders if is_searched(at / f))
                links += [at / f for f in folders if (at / f).is_symlink()]
                yield from (at / name for name in sorted(files) if name.endswith(SUFFIX))
        waiting = links


def is_searched(folder: Path) -> bool:
    """Whether contracts are looked for in a folder: not in hidden ones and in environments of Python."""
    hidden = folder.name.startswith(".") or folder.name in _SKIPPED
    return not hidden and not (folder / "pyvenv.cfg").exists()


def load_contract(path: Path) -> Contract:
    """Load the ``CONTRACT`` of a file, with its location set and its names checked. Raises ContractError.

    The location is the path as given: a symbolic link is a contract of its own, with other files beside it.
    """
    path = Path(os.path.abspath(path))
    if not path.is_file():
        raise ContractError(f"{path}: is not a file")
    try:
        module = load_module(path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ContractError(f"{path}: {type(error).__name__}: {error}") from error
    contract = getattr(module, "CONTRACT", None)
    if not isinstance(contract, Contract):
        raise ContractError(f"{path}: CONTRACT: the file must define it as a verify.Contract")
    contract = dataclasses.replace(contract, directory=path.parent, file=path)
    check_contract(contract, path)
    return contract


def check_contract(contract: Contract, path: Path) -> None:
    """Raise ContractError, with file and field in one line, for an inconsistent contract."""
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
        raise ContractError(f"{path}: observe: define both observe and intermediates, or neither")
    for intermediate in contract.intermediates:
        if intermediate.buffer not in buffers:
            raise ContractError(f"{path}: {intermediate.name}: {intermediate.buffer!r} is not a buffer")
    if contract.batch is not None and contract.symbol(contract.batch) is None:
        raise ContractError(f"{path}: batch: {contract.batch!r} is not a symbol")
    for line in contradictions(contract, path):
        raise ContractError(line)
    if not source_file(contract).is_file():
        raise ContractError(f"{path}: source: there is no {contract.source} beside the contract")


def is_own(contract: Contract) -> bool:
    """Whether it is one of the suite's own contracts, whose sources and fixtures are in separate folders.

    True also if its source was copied to another folder, as it is for a mutant.
    """
    folder = (contract.file.parent if contract.file.name else contract.directory).resolve()
    return _OWN in (folder, *folder.parents)


def source_file(contract: Contract) -> Path:
    """The production source: beside the contract, or in ``cuda/`` for one of the suite's own contracts."""
    beside = contract.directory / contract.source
    return resource_folder("cuda") / contract.source if is_own(contract) and not beside.is_file() else beside


def fixture_file(contract: Contract) -> Path:
    """The fixture file: beside the contract, or in ``fixtures/`` for one of the suite's own contracts."""
    folder = resource_folder("fixtures") if is_own(contract) else contract.directory
    return folder / f"{contract.name}.toml"


def find_contracts(kernels: Sequence[str] = (), folders: Iterable[Path] = ()) -> tuple[Contract, ...]:
    """Contracts by name, contract file, kernel file, or folder; if ``kernels`` is empty, our own and all
    below ``folders``.

    Each contract once. Raises ContractError for an unknown name, listing the known ones.
    """
    if not kernels:
        below = (p for folder in folders for p in contract_files_below(folder))
        return tuple(map(load_contract, _once((*own_contract_files(), *below))))
    found: dict[Path, Contract] = {}
    for kernel in kernels:
        found |= {contract.file: contract for contract in _contracts_named(kernel, tuple(folders))}
    return tuple(found.values())


def _once(files: Iterable[Path]) -> list[Path]:
    """Drop files that were reached twice through links to their folder; a link to a file is another file."""
    places: dict[Path, Path] = {}
    for file in files:
        places.setdefault(file.parent.resolve() / file.name, file)
    return list(places.values())


def _contracts_named(kernel: str, folders: Sequence[Path]) -> list[Contract]:
    if not kernel:
        raise ContractError("a kernel's name is empty: omit it to select all kernels")
    path = Path(kernel)
    if path.is_dir():
        contracts = [load_contract(p) for p in contract_files_below(path)]
        if not contracts:
            raise ContractError(f"{path}: no *{SUFFIX} below this folder")
        return contracts
    if path.is_file():
        if path.name.endswith(SUFFIX):
            return [load_contract(path)]
        beside = path.with_name(f"{path.stem}{SUFFIX}")
        if path.suffix == ".cu" and beside.is_file():
            contract = load_contract(beside)
            if not source_file(contract).samefile(path):
                why = f"{beside.name} is the contract of {contract.source}; to verify that, name the contract"
                raise ContractError(f"{path}: {why}")
            return [contract]
        if beside.is_file():
            raise ContractError(f"{path}: is neither a contract nor a .cu; name {beside.name}")
        raise ContractError(f"{path}: has no contract; write {beside.name} beside it")
    below = (p for f in folders for p in contract_files_below(f))
    candidates = _once((*own_contract_files(), *below))
    matching = [p for p in candidates if p.name == f"{kernel}{SUFFIX}"]
    if len(matching) > 1:
        raise ContractError(f"{kernel}: is ambiguous, {' or '.join(map(str, matching))}: name the file")
    if matching:
        return [load_contract(matching[0])]
    known = ", ".join(dict.fromkeys(p.name.removesuffix(SUFFIX) for p in candidates)) or "none"
    raise ContractError(f"{kernel}: no such kernel or file (known: {known})")
