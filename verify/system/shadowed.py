"""Modules of Python that a file of the same name stands in front of, on ``PYTHONPATH`` say."""

import os
import sys


def shadowed() -> str:
    """``json is /path/json.py, not Python's own``, of the first such module that was imported, or empty."""
    own = os.path.dirname(os.__file__) + os.sep
    for name in sorted(sys.stdlib_module_names & sys.modules.keys()):
        file = getattr(sys.modules[name], "__file__", None)
        if name != "__main__" and file and not os.path.abspath(file).startswith(own):
            return f"{name} is {file}, not Python's own"
    return ""
