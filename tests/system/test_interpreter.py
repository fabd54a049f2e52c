"""What a contract changes in the interpreter is undone after its load, and explains a later error."""

from __future__ import annotations

import builtins
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from verify.contract.discovery import ContractError, load_contract
from verify.contract.module import load_module
from verify.gate.blame import blame
from verify.system.interpreter import Interpreter

CHANGES: dict[str, tuple[str, Callable[[], object]]] = {
    "recursion": ("import sys; sys.setrecursionlimit(150)", sys.getrecursionlimit),
    "built-in": ("import builtins; builtins.sorted = None", lambda: builtins.sorted),
    "import": ("import builtins; builtins.__import__ = lambda *a: 1 / 0", lambda: builtins.__import__),
    "modules": ("import sys; del sys.modules['json']", lambda: sys.modules.get("json")),
    "finders": ("import sys; sys.meta_path.clear(); sys.path_hooks.clear()", lambda: [*sys.meta_path]),
    "function": ("import subprocess; subprocess.Popen = None", lambda: __import__("subprocess").Popen),
    "patch": ("import json; json.dumps = lambda *a: ''", lambda: __import__("json").dumps),
    "warnings": ("import warnings; warnings.simplefilter('error')", lambda: [*warnings.filters]),
    "numpy": ("import numpy as np; np.seterr(all='raise')", np.geterr),
    "streams": ("import sys; sys.stdout = sys.stderr = None", lambda: (sys.stdout, sys.stderr)),
    "environment": ("import os; os.environ.clear()", lambda: dict(os.environ)),
    "folder": ("import os; os.chdir('/')", os.getcwd),
    "temporary": ("import tempfile; tempfile.tempdir = '/nowhere'", lambda: __import__("tempfile").tempdir),
    "timer": (
        "import signal; signal.setitimer(signal.ITIMER_REAL, 1000)",
        lambda: signal.getitimer(signal.ITIMER_REAL),
    ),
    "handler": (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        lambda: signal.getsignal(signal.SIGCHLD),
    ),
    "files": (
        "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (1 << 30, r.getrlimit(r.RLIMIT_FSIZE)[1]))",
        lambda: resource.getrlimit(resource.RLIMIT_FSIZE),
    ),
    "trace": ("import sys; sys.settrace(lambda *a: None)", sys.gettrace),
}


@pytest.fixture(autouse=True)
def no_contract_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contracts of other tests were loaded into another state of this process."""
    monkeypatch.setattr("verify.contract.module._undisturbed", [])


@pytest.mark.parametrize("name", CHANGES)
def test_changes_by_a_contract_during_its_load_are_undone(tmp_path: Path, name: str) -> None:
    """Fault: a contract breaks the suite, or the contract that is loaded after it."""
    code, state = CHANGES[name]
    module = tmp_path / "own_contract.py"
    module.write_text(f"{code}\nDONE = True\n")
    before, all_of_it = state(), Interpreter()
    try:
        assert load_module(module).DONE
        assert state() == before
    finally:  # other tests share this interpreter
        all_of_it.restore()


def test_a_contract_may_print_and_set_its_own_variables(tmp_path: Path) -> None:
    """Fault: what a contract sets for its own use, or switches off, is taken back as if it did harm."""
    module = tmp_path / "own_contract.py"
    module.write_text(
        "import os, warnings\nos.environ['A_CONTRACT_SETS'] = 'this'\nwarnings.simplefilter('ignore')\n"
    )
    with warnings.catch_warnings():
        load_module(module)
        assert warnings.filters[0][0] == "ignore"
    assert os.environ.pop("A_CONTRACT_SETS") == "this"


def test_an_error_after_a_function_has_changed_the_interpreter_is_the_contracts(tmp_path: Path) -> None:
    """Fault: a recursion limit that a reference lowers makes a defect of the suite."""
    module = tmp_path / "own_contract.py"
    module.write_text("import sys\n\ndef lower():\n    sys.setrecursionlimit(200)\n")
    before = sys.getrecursionlimit()
    contract = load_module(module)
    assert blame(RuntimeError("own"))[1] == 3  # the twin: nothing was changed
    contract.lower()
    message, code = blame(RecursionError("too deep"))
    assert (code, sys.getrecursionlimit()) == (2, before)
    assert message == (
        "a contract's code has changed the recursion limit, which verify needs: RecursionError: too deep"
    )


def test_a_contract_that_fails_with_a_changed_interpreter_names_its_own_error(tmp_path: Path) -> None:
    """Fault: the error of a contract is lost among those of a suite without its built-in functions."""
    contract = tmp_path / "own_contract.py"
    contract.write_text(
        "import builtins\nbuiltins.isinstance = builtins.len = None\nraise ValueError('own')\n"
    )
    with pytest.raises(ContractError, match=r"own_contract\.py: ValueError: own"):
        load_contract(contract)
