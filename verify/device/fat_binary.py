"""Reads the fat binaries in a program file: lists their images, and unpacks the compressed ones.

The layout (nvcc 13.0 to 13.5) is described in ``machine/runtime/fatbinary.hpp``, which reads it again when
the program registers them. It is read here to refuse a program before it starts, and because Python may have
zstd where the system lacks it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from verify.toolchain.cache import cached, digest

_CONTAINER = struct.pack("<I", 0xBA55ED50)
_PTX = 1
_ZSTD, _LZ4 = 0x8000, 0x2000


@dataclass(frozen=True)
class Image:
    """One entry. architecture: 90 for sm_90. ptx: PTX text, else machine code. compression: "", zstd or lz4.

    stored: the bytes in the file. size: the unpacked size in bytes, 0 if not compressed.
    """

    architecture: int
    ptx: bool
    compression: str
    stored: bytes
    size: int

    @property
    def key(self) -> str:
        """FNV-1a of the stored bytes, 16 hexadecimal digits: the name that the runtime looks for."""
        value = 0xCBF29CE484222325
        for byte in self.stored:
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        return f"{value:016x}"


MOST_BYTES = 1 << 30
"""Of one image, unpacked: a corrupt size must not exhaust the machine's memory."""


class FatBinaryError(ValueError):
    """The section's contents contradict its sizes; one line."""


def images(section: bytes) -> list[Image]:
    """All images of a ``.nv_fatbin`` section. Raises FatBinaryError if a size exceeds the section."""
    found: list[Image] = []
    at = section.find(_CONTAINER)
    while at >= 0:
        header, size = struct.unpack_from("<HQ", section, at + 6)
        end = at + header + size
        if end > len(section):
            raise FatBinaryError("the fat binary is truncated: build the program again")
        found.extend(_entries(section, at + header, end))
        at = section.find(_CONTAINER, end)
    return found


def unpack(section: bytes) -> Path | None:
    """Unpack every zstd image into a folder of the build cache, where the runtime looks for them.

    None if nothing is compressed, or if the zstandard package is not installed (the runtime then looks for
    the system's libzstd, and failing that suggests ``--no-compress``).
    """
    packed = [image for image in images(section) if image.compression == "zstd"]
    if not packed:
        return None
    try:
        import zstandard
    except ImportError:
        return None

    def build(folder: Path) -> None:
        for image in packed:
            if image.size > MOST_BYTES:
                raise FatBinaryError(f"the program's PTX claims {image.size} bytes: build the program again")
            try:
                text = zstandard.ZstdDecompressor().decompress(image.stored, max_output_size=image.size)
            except zstandard.ZstdError as error:
                raise FatBinaryError(
                    f"the program's compressed PTX is damaged ({error}): build the program again"
                ) from None
            (folder / image.key).write_bytes(text)

    entry, _ = cached("unpacked", digest(image.stored for image in packed), build)
    return entry


def _entries(section: bytes, start: int, end: int) -> Iterator[Image]:
    while start + 64 <= end:
        kind, _, header = struct.unpack_from("<HHI", section, start)
        size, compressed = struct.unpack_from("<QI", section, start + 8)
        (architecture,) = struct.unpack_from("<I", section, start + 28)
        flags, _, unpacked_size = struct.unpack_from("<QQQ", section, start + 40)
        begin = start + header
        if header < 64 or begin + size > end:
            raise FatBinaryError("the fat binary is truncated: build the program again")
        compression = "zstd" if flags & _ZSTD else "lz4" if flags & _LZ4 else ""
        stored = section[begin : begin + (compressed if compression else size)]
        yield Image(architecture, kind == _PTX, compression, stored, unpacked_size if compression else 0)
        start = begin + size
