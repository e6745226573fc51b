"""Every study has a page, and every page says what a reader must know."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prejudge.core.catalogue.filed import read_certificate
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.lab.calibration.page import brief, excerpt

from .docs_pages import words

STUDIES = Catalogue.load().registry.studies
PAGES = sorted((Path(__file__).resolve().parents[1] / "docs" / "studies").glob("*.md"))
MOST = 1_300
"""Words of a page of a study that are written by hand."""
NEEDED = {
    "limits of validity": r"^## Limits",
    "ethical use": r"^## Ethical use",
    "what is measured": r"^## (What is measured|Measures)|^\| measure",
    "readings of the paper": r"^## Where this differs from the paper",
    "its source": r"\(20\d\d\)|20\d\d\)|, 20\d\d|Source:",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.parametrize("part", NEEDED)
def test_page_has(page, part):
    assert re.search(NEEDED[part], page.read_text("utf-8"), re.M), f"{page.name} does not tell {part}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_is_short(page):
    assert words(page.read_text("utf-8")) <= MOST


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_study_is_described(study):
    assert any(f"prejudge run {study}" in page.read_text("utf-8") for page in PAGES), study


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_study_says_where_it_is_from_and_what_it_does_not_show(study):
    entry = STUDIES[study]
    assert entry.title and entry.summary and entry.source and entry.limits


CERTIFICATES = sorted((PAGES[0].parents[2] / "probes").glob("*/certificates/*.json"))
ROOT = Path(__file__).resolve().parents[1]
STATEMENTS = sorted((ROOT / "probes").glob("*/data/**/README.md"))
LISTS = {path.parent for path in (ROOT / "probes").glob("*/data/**/*") if path.suffix in (".csv", ".toml")}


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda path: path.parent.relative_to(ROOT / "probes").as_posix())
@pytest.mark.parametrize("part", ["**Licence**", "**Known limits**", "**Language**", "paper"])
def test_data_statement_has(statement, part):
    assert part in statement.read_text("utf-8")


def test_every_word_list_has_a_statement_that_the_documentation_shows():
    shown = (ROOT / "docs" / "data-statements.md").read_text("utf-8")
    described = {path.parent for path in STATEMENTS}
    # A folder may be described with the one that it stands in, which then names its files.
    within = {
        folder
        for folder in LISTS - described
        if all(
            f"`{folder.name}/{file.name}`" in (folder.parent / "README.md").read_text("utf-8")
            for file in folder.iterdir()
        )
    }
    assert LISTS and described | within == LISTS
    assert all(f'"{path.relative_to(ROOT).as_posix()}"' in shown for path in STATEMENTS)


@pytest.mark.parametrize("path", CERTIFICATES, ids=lambda path: path.stem)
def test_a_page_shows_the_certificate_that_stands_beside_its_study(path):
    certificate = read_certificate(path)
    assert certificate.study == path.stem
    for part in (brief(certificate), excerpt(certificate)):
        assert any(part in page.read_text("utf-8") for page in PAGES), "run benchmarks/certificates.py"
    assert STUDIES[path.stem].calibration.none == ""
