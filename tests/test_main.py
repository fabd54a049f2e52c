"""``python -m verify`` before its commands are imported."""

import subprocess
import sys

INTERRUPTED_IMPORT = """
import runpy, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv = ["verify", "list", "--help"]
runpy.run_module("verify", run_name="__main__")
"""


def start(name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT.format(name=name)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_interrupt_while_commands_are_imported_is_one_line() -> None:
    """Fault: Ctrl-C in the first second prints a traceback of the imports."""
    done = start("verify.cli.app")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "verify: interrupted\n")


def test_start_without_interrupt_reaches_the_command() -> None:
    """The twin: an uninterrupted start is not reported as interrupted."""
    done = start("verify.no_such_module")
    assert done.returncode == 0 and "Usage" in done.stdout and not done.stderr
