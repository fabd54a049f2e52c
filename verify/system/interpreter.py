"""What a contract's code may disturb in the process that verifies it: noticed, named, and undone.

A contract is a program, and its process is the suite's as well. A lower recursion limit, warnings that are
errors, another ``open`` among the built-in functions, a timer that ends the process: what a contract changes
while it is loaded is undone before anything else runs, so that it neither breaks the suite nor reaches the
next contract. What its functions change later may explain an error, and is named and undone there.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import locale
import os
import resource
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CONTRACT_MODULES = "verify_contract_"
"""How the names of the modules begin that contracts become."""

_BUILTINS = builtins.__dict__

_LIMITS = (
    "RLIMIT_AS",
    "RLIMIT_CPU",
    "RLIMIT_DATA",
    "RLIMIT_FSIZE",
    "RLIMIT_NOFILE",
    "RLIMIT_NPROC",
    "RLIMIT_STACK",
)


def _same(before: Any, now: Any) -> bool:
    return bool(before == now)


def _still_there(before: dict[Any, Any], now: dict[Any, Any]) -> bool:
    """More may have come: a contract imports, and sets variables of its own."""
    return all(now.get(name, now) is value for name, value in before.items())


@dataclass(frozen=True)
class _Setting:
    """One thing that can be changed, and no code works as usual then. read, write: its state."""

    what: str
    read: Callable[[], Any]
    write: Callable[[Any], object]
    kept: Callable[[Any, Any], bool] = _same


class Interpreter:
    """The state of the process at one moment.

    It is read by whoever is about to run a contract's code, in the main thread, with nothing beside.
    """

    def __init__(self) -> None:
        self._builtins = dict(_BUILTINS)
        self._settings = [(setting, setting.read()) for setting in _EXPLAINING]
        self._others = [(write, read()) for read, write in _OTHERS]

    def restore(self) -> None:
        """Undo every change since then."""
        self.explain()
        for write, state in self._others:
            with contextlib.suppress(Exception):  # the others still count
                write(state)
        faulthandler.cancel_dump_traceback_later()

    def explain(self) -> list[str]:
        """Undo what may explain an error; what it was, for a person."""
        changed = []
        # First, and by nothing that is looked up among them: all that follows calls them.
        if not self._builtins.items() <= _BUILTINS.items():
            _BUILTINS.update(self._builtins)
            changed.append("built-in functions")
        for setting, state in self._settings:
            with contextlib.suppress(Exception):
                if not setting.kept(state, setting.read()):
                    changed.append(setting.what)
                    setting.write(state)
        return changed


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it is gone
        return None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _raised_warnings() -> list[Any]:
    return [entry for entry in warnings.filters if entry[0] == "error"]


def _raise_warnings(wanted: list[Any]) -> None:
    """Those that are printed or ignored stay as they are: they only speak more or less."""
    warnings.filters[:] = [e for e in warnings.filters if e[0] != "error" or e in wanted]  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _numpy_errors() -> dict[str, str]:
    numpy = sys.modules.get("numpy")
    return dict(numpy.geterr()) if numpy is not None else {}


def _set_numpy_errors(wanted: dict[str, str]) -> None:
    if wanted:
        sys.modules["numpy"].seterr(**wanted)


def _limits() -> dict[str, tuple[int, int]]:
    return {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS}


def _set_limits(wanted: dict[str, tuple[int, int]]) -> None:
    for name, limits in wanted.items():
        with contextlib.suppress(ValueError, OSError):  # a lower hard limit is there to stay
            resource.setrlimit(getattr(resource, name), limits)


def _timers() -> list[bool]:
    return [any(signal.getitimer(which)) for which in _TIMERS]


def _set_timers(wanted: list[bool]) -> None:
    for which, running in zip(_TIMERS, wanted, strict=True):
        if not running:
            signal.setitimer(which, 0)


_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _set_handlers(wanted: dict[int, Any]) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    for number, handler in wanted.items():
        if handler is not None and signal.getsignal(number) != handler:
            signal.signal(number, handler)


def _functions() -> dict[tuple[str, str], Any]:
    """Functions and classes of the modules that are there: what a patch puts another one in the place of."""
    return {
        (module, name): value
        for module, held in list(sys.modules.items())
        for name, value in list(vars(held).items())
        if callable(value)
    }


def _set_functions(wanted: dict[tuple[str, str], Any]) -> None:
    for (module, name), value in wanted.items():
        held = sys.modules.get(module)
        now = None if held is None else vars(held).get(name)
        if held is not None and now is not value and _is_patch(now):
            setattr(held, name, value)


def _unpatched(before: dict[tuple[str, str], Any], now: dict[tuple[str, str], Any]) -> bool:
    return not any(now.get(name) is not value and _is_patch(now.get(name)) for name, value in before.items())


def _is_patch(value: Any) -> bool:
    """Whether that stands in a function's place by a contract's doing: an import may replace some as well."""
    return not callable(value) or (getattr(value, "__module__", None) or "").startswith(CONTRACT_MODULES)


def _streams() -> tuple[Any, ...]:
    return sys.stdin, sys.stdout, sys.stderr


def _set_streams(wanted: tuple[Any, ...]) -> None:
    sys.stdin, sys.stdout, sys.stderr = wanted


def _set_finders(wanted: tuple[list[Any], list[Any]]) -> None:
    sys.meta_path[:], sys.path_hooks[:] = wanted


_EXPLAINING = (
    _Setting("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    _Setting("the digits of an integer", sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    _Setting("imported modules", lambda: dict(sys.modules), sys.modules.update, _still_there),
    _Setting("finders of modules", lambda: (list(sys.meta_path), list(sys.path_hooks)), _set_finders),
    _Setting("functions of modules", _functions, _set_functions, _unpatched),
    _Setting("warnings that are errors", _raised_warnings, _raise_warnings),
    _Setting("numpy.seterr", _numpy_errors, _set_numpy_errors),
    _Setting("limits of resources", _limits, _set_limits),
)
_OTHERS: tuple[tuple[Callable[[], Any], Callable[[Any], object]], ...] = (
    (_streams, _set_streams),
    (lambda: locale.setlocale(locale.LC_ALL), lambda name: locale.setlocale(locale.LC_ALL, name)),
    (lambda: dict(os.environ), os.environ.update),
    (_folder, os.chdir),
    (_umask, os.umask),
    (lambda: tempfile.tempdir, lambda name: setattr(tempfile, "tempdir", name)),
    (_timers, _set_timers),
    (_handlers, _set_handlers),
    (sys.gettrace, sys.settrace),
)
