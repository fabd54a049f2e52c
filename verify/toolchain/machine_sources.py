"""The texts of the machine's sources with all that they include, for the keys of its build."""

from __future__ import annotations

import os
import re
from pathlib import Path

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_UNFOLLOWED = re.compile(
    rb'^[ \t]*(?:#|%:)[ \t]*include\b(?![ \t]*(?:"[^"\n]+"|<[^>\n]+>))[^\n]*|^[^\n]*__has_include[^\n]*'
    rb"|^[ \t]*#[ \t]*(?:\\\n|/\*)[^\n]*|^[^\n]*\.incbin[^\n]*",
    re.MULTILINE,
)
"""Ways to read a file that ``_INCLUDE`` does not match; the machine's sources may not use them."""


class MachineBuildError(RuntimeError):
    """The CPU device cannot be compiled here; the first line says why, the rest is the compiler's output."""


def closure(
    source: Path, root: Path, read: dict[Path, tuple[bytes, list[Path]]] | None = None
) -> list[bytes]:
    """The names and texts of a source file and of all that it includes with quotes, transitively.

    read: files read before, with their includes, since nearly all sources share their headers.
    """
    read = {} if read is None else read
    seen: set[Path] = set()
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        if file not in read:
            text = file.read_bytes()
            if unfollowed := _UNFOLLOWED.search(text):
                line = unfollowed[0].decode(errors="replace").strip()
                raise MachineBuildError(f"{file}: {line!r}: the build follows only a plain #include")
            names = [name.decode() for name in _INCLUDE.findall(text)]
            beside = {os.path.normpath(start / name) for name in names for start in (file.parent, root)}
            read[file] = (text, [Path(path) for path in beside if os.path.isfile(path)])
        waiting += read[file][1]
    return [part for file in sorted(seen) for part in (os.path.relpath(file, root).encode(), read[file][0])]
