"""Published files and folders appear atomically, and no folder is replaced."""

from __future__ import annotations

from pathlib import Path

from verify.system.publish import publish_folder, publish_text


def test_text_replaces_the_old_file_and_leaves_no_other(tmp_path: Path) -> None:
    """Fault: a write in place, which a concurrent reader sees half done, or a partial file is left behind."""
    file = tmp_path / "results.json"
    file.write_text("old")
    with file.open() as reading:
        publish_text(file, "new, and é")
        assert reading.read() == "old", "an open reader keeps the whole old file"
    assert file.read_text(encoding="utf-8") == "new, and é"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_with_files_is_never_replaced(tmp_path: Path) -> None:
    """Fault: a publish that mixes two processes' results, or loses the first one's."""
    first, second, target = (tmp_path / name for name in ("first", "second", "target"))
    for made in (first, second):
        made.mkdir()
        (made / "whose").write_text(made.name)
    assert publish_folder(first, target)
    assert not publish_folder(second, target)
    assert (target / "whose").read_text() == "first" and (second / "whose").is_file()
