"""The tables of settings on the adapters' pages have each setting once, with the meaning that stands in the code."""

import re

import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.validation import field_docs

from .docs_pages import ROOT

PAGES = [page for page in sorted((ROOT / "docs/adapters").glob("*.md")) if page.stem not in ("dialects", "new")]
ROW = re.compile(r"^\| `(\w+)` \|[^|]*\| ([^|]*?) \|", re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_of_the_page_are_those_of_the_code(page):
    options = Catalogue.load(None).plugins.load("adapter", page.stem).options
    table = re.search(r"^\| setting \|.*?(?=^[^|])", page.read_text("utf-8"), re.M | re.S)
    told = ROW.findall(table[0])
    meanings = {name: " ".join(text.split()) for name, text in field_docs(options).items()}
    assert dict(told) == meanings and len(told) == len(options.__struct_fields__)
