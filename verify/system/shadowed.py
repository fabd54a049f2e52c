"""Finds modules of Python's standard library that a file of the same name shadows."""

import os
import sys


def shadowed() -> str:
    """For example ``json is /path/json.py, not Python's own``: the first shadowed module, or empty."""
    own = os.path.dirname(os.__file__) + os.sep
    for name in sorted(sys.stdlib_module_names & sys.modules.keys()):
        file = getattr(sys.modules[name], "__file__", None)
        if name != "__main__" and file and not os.path.abspath(file).startswith(own):
            return f"{name} is {file}, not Python's own"
    return ""
