"""The programs of known truth: found, compiled together, run on the CPU device.

Each ``.cu`` file in ``programs/`` is a whole program. To spare compiles, several become one binary, each in a
namespace of its own, chosen by its name as the argument.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verify.check.program import ProgramReport, run_program
from verify.device.program import ProgramOptions
from verify.toolchain.cache import cached, digest
from verify.toolchain.compile import compile_folder, run_compiler
from verify.toolchain.toolchain import find_toolchain

PROGRAMS = Path(__file__).parent / "programs"
BINARIES = 4
"""How many binaries the programs are spread over."""

HEADERS = (
    "chrono",
    "cooperative_groups.h",
    "cooperative_groups/reduce.h",
    "cstring",
    "cuda/atomic",
    "cuda.h",
    "cuda/barrier",
    "cuda/ptx",
    "cuda/std/utility",
    "cuda_pipeline.h",
    "nvtx3/nvToolsExtMem.h",
    "thread",
    "vector",
)
"""What any of them includes, but for what few do: read before the namespaces open."""


@dataclass(frozen=True)
class Expectation:
    """What a faulty program must be found guilty of. check: the finding's, which any tool may have on.

    kinds: how the finding's kind may begin.
    """

    program: str
    tool: str
    check: str
    kinds: tuple[str, ...]
    twin: str
    level: str


def names() -> list[str]:
    return sorted(file.stem for file in PROGRAMS.glob("*.cu"))


def expectations() -> list[Expectation]:
    table = tomllib.loads((PROGRAMS / "expectations.toml").read_text())
    return [
        Expectation(
            name,
            row["tool"],
            row.get("check", row["tool"]),
            (row["kind"],) if isinstance(row["kind"], str) else tuple(row["kind"]),
            row.get("twin", name.removesuffix("_faulty") + "_right"),
            row.get("level", "error"),
        )
        for name, row in table.items()
    ]


def marked_lines(program: str, mark: str) -> set[int]:
    """The lines of a program that carry ``// @mark``."""
    lines = (PROGRAMS / f"{program}.cu").read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if f"// @{mark}" in line}


def run(program: str, tools: tuple[str, ...], scratch: Path, **options: object) -> ProgramReport:
    """Run one program under the tools; its output and the text of the report go to ``scratch``."""
    chosen = ProgramOptions(tools=tools, launch_timeout=60, log_file=scratch / "report.txt", **options)  # type: ignore[arg-type]
    with (scratch / "output.txt").open("w") as output:
        return run_program([str(_binary(program)), program], chosen, stdout=output.fileno())


def _binary(program: str) -> Path:
    return _build(names().index(program) % BINARIES)


@cache
def _build(part: int) -> Path:
    programs = names()[part::BINARIES]
    tools = find_toolchain()
    tools.require_build()
    main = _main(programs)
    sources = [(PROGRAMS / f"{name}.cu").read_bytes() for name in programs]
    headers = [file.read_bytes() for file in sorted(PROGRAMS.glob("*.cuh"))]
    key = digest([main, *sources, *headers, str(PROGRAMS), tools.identity])

    def build(entry: Path) -> None:
        assert tools.nvcc is not None and tools.gxx is not None
        command = (
            *(tools.nvcc, "-std=c++17", "-lineinfo", "--no-compress", "-ccbin", tools.gxx),
            *("-gencode", "arch=compute_90,code=compute_90", "-I", PROGRAMS, *tools.include_flags()),
            *("programs.cu", "-o", "program", *tools.link_flags()),
        )
        with compile_folder() as folder:
            (folder / "programs.cu").write_text(main)
            run_compiler(command, folder, tools, f"programs of known truth, part {part + 1} of {BINARIES}")
            shutil.copy(folder / "program", entry)

    entry, _ = cached("known-programs", key, build)
    return entry / "program"


def _main(programs: list[str]) -> str:
    sources = [(PROGRAMS / f"{name}.cu").read_text() for name in programs]
    large = {name for text in sources for name in re.findall(r"#include <((?:cub/|cuda_fp16)[^>]*)>", text)}
    lines = [f"#include <{header}>" for header in (*HEADERS, *sorted(large))]
    lines += [f'#include "{file.name}"' for file in sorted(PROGRAMS.glob("*.cuh"))]
    lines += ["#define main program_main"]
    for name in programs:
        lines += [f"namespace {name} {{", f'#include "{name}.cu"', "}"]
    lines += ["#undef main", "int main(int count, char** arguments) {", "  if (count != 2) return 2;"]
    for name in programs:
        lines.append(f'  if (!std::strcmp(arguments[1], "{name}")) return {name}::program_main();')
    return "\n".join([*lines, "  return 2;", "}", ""])
