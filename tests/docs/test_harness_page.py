"""harness_templates/README.md names every file, command, option and line of the harness, and no other."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "harness_templates"
PAGE = (FOLDER / "README.md").read_text()
CODE = {file.name: file.read_text() for file in FOLDER.iterdir() if file.suffix != ".md"}


def table(heading: str) -> list[str]:
    """First cells of the table below a header row."""
    body = PAGE.split(heading, 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| (`.*?) \|", body, re.MULTILINE)


def test_every_file_has_a_line() -> None:
    """Fault: a file was added or renamed, and a reader looks for it in vain."""
    named = [name for cell in table("| file |") for name in re.findall(r"`([\w.]+)`", cell)]
    assert sorted(named) == sorted(CODE)


def test_every_command_and_option_is_named() -> None:
    """Fault: a command of the harness that only its source knows."""
    commands = table("| command |")
    taken = re.findall(r'command == "(\w+)"', CODE["verify_main.cuh"])
    assert [cell.strip("`").split()[0] for cell in commands] == taken
    options = {option for text in CODE.values() for option in re.findall(r'== "(--[\w-]+)"', text)}
    options |= {option for text in CODE.values() for option in re.findall(r'!= "(--[\w-]+)"', text)}
    assert options == set(re.findall(r"--[\w-]+", " ".join(commands)))


def test_every_line_of_a_run_is_named() -> None:
    """Fault: a line is documented that no run prints, or one is not documented."""
    printed = {word for text in CODE.values() for word in re.findall(r'mark\("(\w+) ', text)}
    assert printed == {cell.strip("`@").split()[0] for cell in table("| line |")}
