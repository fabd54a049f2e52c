"""Fat binaries inside a program file: which images there are, and unpacking the compressed ones.

The layout (nvcc 13.0 to 13.5) is described in ``machine/runtime/fatbinary.hpp``, which reads it again when
the program registers them. Here it is read to refuse a program before it starts, and because zstd is at hand
in Python where the system may lack it.
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

    stored: the bytes as they lie in the file. size: bytes when unpacked, 0 when not compressed.
    """

    architecture: int
    ptx: bool
    compression: str
    stored: bytes
    size: int

    @property
    def key(self) -> str:
        """FNV-1a of the stored bytes, 16 hexadecimal digits: the name under which the shim looks for it."""
        value = 0xCBF29CE484222325
        for byte in self.stored:
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        return f"{value:016x}"


MOST_BYTES = 1 << 30
"""Of one image, unpacked: a damaged size must not take the machine's memory."""


class FatBinaryError(ValueError):
    """The section does not hold what its sizes say; one line."""


def images(section: bytes) -> list[Image]:
    """All images of a ``.nv_fatbin`` section. Raises FatBinaryError when a size leaves the section."""
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
    """Unpacks every zstd image into a folder of the build cache, for the shim to find.

    None when nothing is compressed, or when the zstandard package is not installed (the shim then looks for
    the system's libzstd, and otherwise names ``--no-compress``).
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
