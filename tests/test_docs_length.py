"""The documentation stays short: what is written by hand, and what a stranger reads first."""

import re
import tomllib

import pytest

from prejudge.core.catalogue.packages import NOT_FOR_USERS

from .docs_pages import PAGES, ROOT, name_of, words

WRITTEN_BY = {
    "docs/calibration.md": "make calibrate",
    "docs/calibration-adversaries.md": "make adversaries",
    "docs/calibration-power.md": "make bench-power",
    "docs/licences.md": "make licences",
    "docs/reference/api.md": "make reference",
    "docs/reference/commands.md": "make reference",
    "docs/reference/designs.md": "make reference",
    "docs/reference/exit-codes.md": "make reference",
    "docs/reference/formats.md": "make reference",
    "docs/reference/measures.md": "make reference",
    "docs/reference/options.md": "make reference",
    "docs/reference/settings.md": "make reference",
    "docs/real-models.md": "make real",
    "docs/refusals.md": "make refusals",
}
"""Pages that a program writes, and what they say of it.

A reference is looked up and grows with the code, so that it does not count as running text; its words are those of
`--help` and of docstrings. tests/test_reference_pages.py, tests/test_licences.py and
tests/core/reading/test_refusals.py hold each to the code; docs/real-models.md holds what was measured.
"""
LOOKED_UP = {"docs/errors.md", "docs/reading.md"}
"""Lists that nobody reads through; tests/core/contracts/test_error_codes.py and tests/core/reading/test_corpus.py hold
these to the code."""
MOST = {"README.md": 450, "docs/index.md": 500, "docs/start.md": 925}
"""Words of the pages that are read first."""
WHOLE = 56_890
"""Words of all pages that are written by hand, without the lists that are only looked up."""


def test_documentation_is_no_book():
    apart = WRITTEN_BY.keys() | LOOKED_UP
    lengths = {name_of(page): words(page.read_text("utf-8")) for page in PAGES if name_of(page) not in apart}
    longest = sorted(lengths.items(), key=lambda item: -item[1])[:5]
    assert sum(lengths.values()) <= WHOLE, f"shorten, or move facts to where they are written from the code: {longest}"


@pytest.mark.parametrize("name", MOST)
def test_first_pages_are_short(name):
    assert words((ROOT / name).read_text("utf-8")) <= MOST[name]


@pytest.mark.parametrize("name", WRITTEN_BY)
def test_page_says_what_writes_it(name):
    text = (ROOT / name).read_text("utf-8")
    assert WRITTEN_BY[name] in text
    assert re.search(rf"^{WRITTEN_BY[name].partition(' ')[2]}:", (ROOT / "Makefile").read_text("utf-8"), re.M)


def test_first_page_names_every_extra():
    """What a user may install stands in one table, with what it is for."""
    table = re.search(r"^\| extra \| for \|\n(.*?)\n\n", (ROOT / "docs/start.md").read_text("utf-8"), re.M | re.S)
    told = re.findall(r"`([\w-]+)`", " ".join(row.split("|")[1] for row in table[1].splitlines()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].keys() - NOT_FOR_USERS
    assert sorted(told) == sorted({*extras, "all"})
