"""What the pages of the documentation show: blocks, and the commands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```|(?:(?<=\n\n)|^)((?:    .*\n)+)", re.M | re.S)
"""A fenced block with its language, its file and its text, or an indented block."""
SHELL = ("", "bash")
"""Languages of blocks that may hold commands."""


class Block(NamedTuple):
    """A block of a page."""

    page: Path
    language: str
    title: str
    """The file that the block is; empty where it is none."""
    text: str


def blocks_of(page: Path) -> list[Block]:
    """Return what a page shows, in its order."""
    return [
        Block(page, language, title, fenced or re.sub(r"^    ", "", indented, flags=re.M))
        for language, title, fenced, indented in FENCE.findall(page.read_text("utf-8"))
    ]


def write_files(page: Path, place: Path) -> None:
    """Write the files that a page shows."""
    for block in blocks_of(page):
        if block.title:
            (place / block.title).parent.mkdir(parents=True, exist_ok=True)
            (place / block.title).write_text(block.text, "utf-8")


def blocks(language: str) -> list[Block]:
    """Return the blocks of all pages in a language."""
    return [block for page in PAGES for block in blocks_of(page) if block.language == language]


def words(text: str) -> int:
    """Return the number of words: what has a letter or a figure, without comments and what a program writes."""
    own = re.sub(r"<!--[^>]*: written by .*?<!-- end of ", "<!-- ", text, flags=re.S)
    shown = re.sub(r"<!--.*?-->", "", own, flags=re.S)
    return sum(re.search(r"[^\W_]", word) is not None for word in shown.split())


def name_of(page: Path) -> str:
    """Return a page's path from the root."""
    return str(page.relative_to(ROOT))


def lines_of(block: Block) -> list[str]:
    """Return the lines that a shell would run, without comments; a backslash joins lines."""
    if block.title or block.language not in SHELL:
        return []
    lines = re.sub(r"\\\n\s*", "", block.text).splitlines()
    return [bare for line in lines if (bare := re.sub(r"(?:^|\s)#.*$", "", line).strip())]


def commands_of(page: Path) -> list[str]:
    """Return the lines of a page that call `prejudge`."""
    return [line for block in blocks_of(page) for line in lines_of(block) if line.startswith("prejudge ")]


def told_commands() -> Iterator[tuple[str, str]]:
    """Yield page and text of each command that stands in a sentence, or in a block that is only text."""
    for page in PAGES:
        if "Written by `make reference`" in page.read_text("utf-8"):
            continue  # from the commands themselves
        for block in blocks_of(page):
            if block.language == "text":
                yield from ((name_of(page), line) for line in block.text.splitlines() if line.startswith("prejudge "))
        for text in re.findall(r"`(prejudge [a-z][^`]*)`", FENCE.sub("", page.read_text("utf-8"))):
            yield name_of(page), re.sub(r"\s+", " ", text)
