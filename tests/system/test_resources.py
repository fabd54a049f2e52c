"""The project's folders, in a checkout and in a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.system import resources
from verify.system.resources import FOLDERS, resource_folder


def test_a_wheels_folders_are_found_without_a_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Fault: an installed package searches only beside itself."""
    package = tmp_path / "site-packages" / "verify"
    for name in FOLDERS:
        (package / "data" / name).mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert [resource_folder(name) for name in FOLDERS] == [package / "data" / name for name in FOLDERS]


def test_a_checkout_comes_first() -> None:
    assert (resource_folder("harness_templates") / "harness.cu.j2").is_file()
    assert resource_folder("cuda") == Path(resources.__file__).parents[2] / "cuda"


@pytest.mark.parametrize("name", ["", "tests", "../etc"])
def test_other_folders_are_refused(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="none of"):
        resource_folder(name)
