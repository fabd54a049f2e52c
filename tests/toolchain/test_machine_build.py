"""The build of the CPU device: its cache keys, and its error messages."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from verify.system.guard import guarded
from verify.system.resources import resource_folder
from verify.toolchain.machine_build import (
    FOLDERS,
    _compile_all,
    _Plan,
    compile_commands,
    machine_program,
    machine_warnings,
    warnings_beside,
)
from verify.toolchain.machine_sources import MachineBuildError, closure
from verify.toolchain.toolchain import find_toolchain

TESTS = Path(__file__).resolve().parent.parent
PROGRAMS = sorted(file for file in (TESTS / "machine").rglob("*.cpp") if file.stem != "run_gpu")


@pytest.mark.parametrize(
    "line",
    [
        "#include HEADER",
        '#include /* its own */ "x.hpp"',
        '#  include \\\n"x.hpp"',
        '# /* a */ include "x.hpp"',
        '#if __has_include("x.hpp")',
        'asm(".incbin \\"x\\"");',
    ],
)
def test_an_include_that_the_build_cannot_follow_is_rejected(tmp_path: Path, line: str) -> None:
    """Fault: a header that is read in a way that the key does not follow is edited, and nothing compiled."""
    source = tmp_path / "a.cpp"
    source.write_text(f"#include <vector>\n{line}\n")
    with pytest.raises(MachineBuildError, match="only a plain #include"):
        closure(source, tmp_path)


def test_the_machine_has_only_plain_includes() -> None:
    """The twin: no source of the machine is rejected, and its includes are followed."""
    root = resource_folder("machine")
    sources = [file for folder in FOLDERS for file in (root / folder).glob("*.cpp")]
    assert len(sources) > 50
    assert all(len(closure(source, root)) >= 2 for source in sources)


def test_the_machine_compiles_without_a_warning() -> None:
    """Fault: a shadowed name or an unused result, which -Wshadow and -Wextra show, is landed unseen."""
    assert machine_warnings() == []


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda source: source.stem)
def test_programs_on_the_machine_compile_without_a_warning(source: Path) -> None:
    """Fault: the same in the C++ of the tests and of the table."""
    assert warnings_beside(machine_program(source)) == []


def test_a_warning_is_kept_and_no_error(tmp_path: Path) -> None:
    """Fault: a newer compiler warns, and nothing runs; or the tests above read what is never written."""
    source = tmp_path / "machine" / "shadows.cpp"
    source.parent.mkdir()
    source.write_text("int main() {\n  int a = 0;\n  { int a = 1; (void)a; }\n  return a;\n}\n")
    assert "[-Wshadow]" in "".join(warnings_beside(machine_program(source)))


def test_compile_commands_name_every_source(tmp_path: Path) -> None:
    """Fault: an editor or clang-tidy sees part of the machine, or compiles it with other flags."""
    root = resource_folder("machine")
    commands = compile_commands()
    assert {entry["file"] for entry in commands} == {
        str(f) for name in FOLDERS for f in (root / name).glob("*.cpp")
    }
    one = commands[0]["arguments"]
    assert isinstance(one, list)
    done = subprocess.run([*one, "-fsyntax-only"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_first_error_ends_the_build_and_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: all other files are compiled first, for minutes, and the reason is an exit code."""
    monkeypatch.setenv("VERIFY_CACHE", str(tmp_path / "cache"))
    started: list[str] = []

    def counted(command: Sequence[str], **how: Any) -> AbstractContextManager[subprocess.Popen[bytes]]:
        started.append(command[-3])
        return guarded(command, **how)

    monkeypatch.setattr("verify.toolchain.compile.guarded", counted)
    tools = find_toolchain()
    keys = {}
    (tmp_path / "part").mkdir()
    for number in range(40):
        source = tmp_path / "part" / ("bad.cpp" if number == 0 else f"other{number}.cpp")
        # The largest goes first.
        source.write_text("int broken(;\n" + "//" + " " * 1000 if number == 0 else "int right;\n")
        keys[source] = f"{number:032x}"
    plan = _Plan(tools, tmp_path / "part", ("-std=c++20", f"-I{tmp_path}"), (), keys)
    with pytest.raises(MachineBuildError) as caught:
        _compile_all(plan, lambda _: None)
    first = str(caught.value).splitlines()[0]
    assert "part/bad.cpp (exit 1)" in first and "error: " in first
    assert len([one for one in started if one.endswith(".cpp")]) < 30
