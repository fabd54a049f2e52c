"""Locates the project's own files: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = ("cuda", "fixtures", "harness_templates", "machine", "mutants")


def resource_folder(name: str) -> Path:
    """One of FOLDERS: the production kernels, the fixtures, the harness's templates, the CPU device.

    Raises FileNotFoundError, naming both places, when it is in neither.
    """
    if name not in FOLDERS:
        raise FileNotFoundError(f"{name!r} is none of {', '.join(FOLDERS)}")
    places = (_PACKAGE.parent / name, _PACKAGE / "data" / name)
    for place in places:
        if place.is_dir():
            return place
    raise FileNotFoundError(f"{name} is missing: looked for {places[0]} and {places[1]}")
