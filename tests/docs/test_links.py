"""Links of the manual, and paths that it names, lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "bench",
    "ci",
    "cuda",
    "docs",
    "examples",
    "fixtures",
    "harness_templates",
    "machine",
    "tests",
    "verify",
)
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
SOURCES = sorted(
    file
    for folder in FOLDERS
    for file in (ROOT / folder).rglob("*")
    if file.suffix in (".py", ".sh", ".yml", ".toml", ".cpp", ".hpp", ".cu", ".cuh", ".inc")
)

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`")
_PAGE = re.compile(r"\bdocs/[\w/]+\.md")


def anchors(page: Path) -> set[str]:
    """The anchors that a renderer of Markdown gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    """Fault: a page or a heading was moved and the links to it were not."""
    for link in _LINK.findall(page.read_text()):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_paths_that_a_page_names_are_there(page: Path) -> None:
    """Fault: a reader looks for a file that has another name."""
    named = {path for path in _PATH.findall(page.read_text()) if "NAME" not in path}
    assert not {path for path in named if not (ROOT / path).exists()}


def test_pages_that_sources_name_are_there() -> None:
    """Fault: a docstring, a comment or a recipe sends its reader to a page that was moved."""
    named = {(page, file) for file in SOURCES for page in _PAGE.findall(file.read_text(errors="replace"))}
    assert named
    assert not [(page, str(file)) for page, file in named if not (ROOT / page).is_file()]


def test_every_page_is_reached_from_the_index() -> None:
    """Fault: a page that no reader finds."""
    reached, waiting = set(), [ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = (link.partition("#")[0] for link in _LINK.findall(page.read_text()) if "://" not in link)
        waiting += [(page.parent / link).resolve() for link in links if link]
    assert not [str(page) for page in (ROOT / "docs").rglob("*.md") if page not in reached]
