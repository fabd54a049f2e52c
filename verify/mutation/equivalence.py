"""Whether a changed source is the same program: its device code and its host code are the original's.

Comments, line numbers and debug sections are ignored, and so is the compiler's name for the source, which
follows every change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from verify.contract.model import Contract
from verify.device.elf import read_program, sections_of
from verify.device.fat_binary import images
from verify.harness.build import write_source
from verify.harness.commands import compile_command
from verify.toolchain.compile import compile_folder, run_compiler
from verify.toolchain.toolchain import Toolchain

_MODULE = re.compile(rb"(?<=_)[0-9a-f]{8}(?=_\d+_harness_cu_[0-9a-f]{8})")
_TEMPORARY = re.compile(rb"tmpxft_[0-9a-f]{8}_[0-9a-f]{8}-\d+")
_PLANTED = re.compile(rb"/mutant/[0-9a-f]{32}/")
_COMMENT = re.compile(r"//.*|/\*.*?\*/", re.DOTALL)
_DEBUG_LINE = re.compile(r"\s*(?:\.loc\b|\.file\b|\$L__(?:tmp|func|info)\w*:)")
_DEBUG_SECTION = re.compile(r"\.section\s+\.debug\w*\s*\{.*?\}", re.DOTALL)
_NO_CODE = (".comment", ".debug", ".rela.debug", ".note", ".nv_fatbin", ".shstrtab", ".rela.eh_frame")


def device_code(binary: Path) -> tuple[str, ...]:
    """The PTX of a harness, an architecture each, without comments, lines and debug sections."""
    program = read_program(binary)
    found = images(program.fat_binaries) if program is not None else []
    return tuple(_bare(_renamed(image.stored)) for image in found if image.ptx)


def _bare(ptx: bytes) -> str:
    text = _DEBUG_SECTION.sub("", ptx.rstrip(b"\0").decode(errors="replace"))
    lines = (_COMMENT.sub("", line).strip() for line in text.splitlines() if not _DEBUG_LINE.match(line))
    return "\n".join(line for line in lines if line)


def host_code(
    contract: Contract, architectures: Sequence[str], tools: Toolchain
) -> tuple[tuple[str, bytes], ...]:
    """The sections of a harness's object file that make host code. Raises BuildError."""
    with compile_folder() as folder:
        write_source(contract, folder)
        run_compiler(compile_command(contract, architectures, tools, False), folder, tools, contract.name)
        data = (folder / "harness.o").read_bytes()
    return tuple(
        (_renamed(section.name.encode()).decode(), _renamed(section.content))
        for section in sections_of(data)
        if not section.name.startswith(_NO_CODE)
    )


def _renamed(text: bytes) -> bytes:
    """With one name for all sources that are compiled, and for all folders that they stand in."""
    return _PLANTED.sub(b"/mutant/", _TEMPORARY.sub(b"tmpxft", _MODULE.sub(b"00000000", text)))
