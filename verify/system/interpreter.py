"""Detects, names and undoes what a contract's code may change in the process that verifies it.

A contract is a program that shares its process with the suite: it may lower the recursion limit, turn
warnings into errors, replace a built-in such as ``open``, or set a timer that kills the process. What it
changes while it is loaded is undone before anything else runs, so that it neither breaks the suite nor
affects the next contract. What its functions change later may explain an error, and is named and undone at
that point.
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
"""The prefix of the names of the modules that contracts are loaded as."""

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
    """Additions are fine: a contract imports modules and sets variables of its own."""
    return all(now.get(name, now) is value for name, value in before.items())


@dataclass(frozen=True)
class _Setting:
    """A setting that breaks other code when changed. read, write: get and set its state."""

    what: str
    read: Callable[[], Any]
    write: Callable[[Any], object]
    kept: Callable[[Any, Any], bool] = _same


class Interpreter:
    """A snapshot of the process's state.

    Take it right before running a contract's code, in the main thread, with no other thread running.
    """

    def __init__(self) -> None:
        self._builtins = dict(_BUILTINS)
        self._settings = [(setting, setting.read()) for setting in _EXPLAINING]
        self._others = [(write, read()) for read, write in _OTHERS]

    def restore(self) -> None:
        """Undo every change since the snapshot."""
        self.explain()
        for write, state in self._others:
            with contextlib.suppress(Exception):  # restore the others nevertheless
                write(state)
        faulthandler.cancel_dump_traceback_later()

    def explain(self) -> list[str]:
        """Undo the changes that may explain an error, and return their descriptions."""
        changed = []
        # First, and without calling any built-in: all the code below calls them.
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
    except OSError:  # it was deleted
        return None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _raised_warnings() -> list[Any]:
    return [entry for entry in warnings.filters if entry[0] == "error"]


def _raise_warnings(wanted: list[Any]) -> None:
    """Restore the filters that raise. Those that print or ignore stay: they only change the output."""
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
        with contextlib.suppress(ValueError, OSError):  # a lowered hard limit cannot be raised again
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
    """Functions and classes of the loaded modules: what a patch may have replaced."""
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
    """Whether a contract has put ``value`` in a function's place; an import may replace functions too."""
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
