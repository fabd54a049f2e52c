"""Reads what the CPU device must know about a program file before starting it, such as its libraries."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_SECTION_DYNAMIC = 6
_NEEDED, _RPATH = 1, 15


@dataclass(frozen=True)
class ProgramFile:
    """Properties of one ELF file.

    needed: names of the shared libraries that it needs. has_rpath: DT_RPATH is set, which the loader searches
    before LD_LIBRARY_PATH. fat_binaries: contents of the section of device code, empty if there is none.
    relocatable: it also has the section that ``-rdc=true`` produces.
    """

    needed: tuple[str, ...]
    has_rpath: bool
    fat_binaries: bytes
    relocatable: bool

    @property
    def runtime(self) -> str | None:
        """The CUDA runtime library that it asks for (``libcudart.so.13``); None when static or none."""
        return next((name for name in self.needed if name.startswith("libcudart.so")), None)


def read_program(path: Path) -> ProgramFile | None:
    """The properties of a 64-bit little-endian ELF file; None for anything else (such as a script)."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError, OverflowError):
        return None


@dataclass(frozen=True)
class Section:
    """One section of an ELF file; its content is empty where the file holds none."""

    name: str
    kind: int
    content: bytes
    link: int


def _read(data: bytes) -> ProgramFile:
    sections = sections_of(data)
    by_name = {section.name: section for section in sections}
    needed: list[str] = []
    has_rpath = False
    for section in sections:
        if section.kind != _SECTION_DYNAMIC:
            continue
        strings = sections[section.link].content
        for tag, value in struct.iter_unpack("<qQ", section.content):
            if tag == _NEEDED:
                needed.append(_text(strings, value))
            has_rpath |= tag == _RPATH
    fat = by_name.get(".nv_fatbin")
    return ProgramFile(
        tuple(needed), has_rpath, fat.content if fat is not None else b"", "__nv_relfatbin" in by_name
    )


def sections_of(data: bytes) -> list[Section]:
    """The sections of a 64-bit little-endian ELF file. Raises ValueError, IndexError or struct.error."""
    start, _, _, _, _, entry_size, count, names_index = struct.unpack_from("<QIHHHHHH", data, 40)
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, start + index * entry_size) for index in range(count)]
    no_bits = 8

    def content(index: int) -> bytes:
        _, kind, _, _, offset, size = raw[index][:6]
        return b"" if kind == no_bits else data[offset : offset + size]

    names = content(names_index)
    return [Section(_text(names, row[0]), row[1], content(i), row[6]) for i, row in enumerate(raw)]


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode(errors="replace")
