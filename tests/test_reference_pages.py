"""The pages of docs/reference say what stands in the code, each thing once, and each adapter's page leads there."""

import re

import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.exits import EXITS
from prejudge.probes.subtle.data_files import REQUIRED

from .docs_pages import ROOT
from .reference_commands import commands
from .reference_formats import FORMATS, columns
from .reference_pages import FOLDER, PAGES, built_in
from .reference_parts import PARTS, with_part

ADAPTERS = [page for page in sorted((ROOT / "docs/adapters").glob("*.md")) if page.stem != "new"]


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name):
    assert (FOLDER / name).read_text("utf-8") == PAGES[name](built_in()), "run `make reference`"


@pytest.mark.parametrize("name", PARTS)
def test_table_within_a_page_is_up_to_date(name):
    text = PARTS[name][0].read_text("utf-8")
    assert text == with_part(name, text), "run `make reference`"


@pytest.mark.parametrize("name", sorted({*PAGES} - {"designs.md", "formats.md", "exit-codes.md", "api.md"}))
def test_every_row_has_a_meaning(name):
    rows = [line for line in PAGES[name](built_in()).splitlines() if line.startswith("| `")]
    # What stands in brackets alone is a default or a range.
    assert len(rows) > 90 and all(re.sub(r"\[[^]]*\]", "", row.split(" | ")[-1]).strip("| ") for row in rows)


def test_exit_codes_are_those_of_commands_that_return_one():
    named = {command for one in EXITS for command in one.commands}
    returning = {name for name, command in commands() if command.callback.__annotations__.get("return") == "int"}
    assert named == returning


def test_pages_have_all_that_the_package_offers():
    plugins = built_in()
    settings = PAGES["settings.md"](plugins)
    assert all(f"`{name}`" in settings for name in plugins.offers["adapter"])
    assert all(f"`{name}`" in PAGES["options.md"](plugins) for name in plugins.offers["probe"])


@pytest.mark.parametrize("page", ADAPTERS, ids=lambda page: page.stem)
def test_page_of_an_adapter_leads_to_its_settings(page):
    assert "](../reference/settings.md#" in page.read_text("utf-8")


def test_every_adapter_has_its_place_on_a_page():
    told = "".join(page.read_text("utf-8") for page in ADAPTERS)
    missing = {name for name in built_in().offers["adapter"] if f"`{name}`" not in told} - {"imported"}
    assert not missing, f"docs/adapters says nothing of {sorted(missing)}"


def test_designs_are_those_that_studies_declare():
    page = PAGES["designs.md"](built_in())
    parts = dict(re.findall(r"\n## `(.+?)`\n(.*?)(?=\n## |\Z)", page, re.S))
    assert len(parts) == 11
    assert "| `place` | sampled | 40 | `template` |" in parts["bistereo-pairs"]
    assert "Inference covers `opening`, `place`, `attribute` by default" in parts["bistereo-pairs"]
    assert "| `form` | fixed | 4 | `template` |" in parts["bistereo-nli"]
    assert "| of the file" in parts["crows-pairs"]


def test_formats_are_of_every_file_that_a_study_reads():
    catalogue = Catalogue.load(None)
    read = {(name, one.option) for name, entry in catalogue.registry.studies.items() for one in entry.material}
    assert {(study, form.option) for form in FORMATS for study in form.studies} == read


def test_formats_say_what_readers_refuse():
    """Compared with what the readers say of themselves, in their lists of columns and their docstrings."""
    catalogue = Catalogue.load(None)
    found = {(form.studies[0], form.option): {c.name: c for c in columns(catalogue, form)} for form in FORMATS}
    assert {name for name, c in found["subtle-sai", "data"].items() if c.needed != "no"} == {
        f"`{name}`" for name in REQUIRED
    }
    faces = found["attractiveness", "data"]
    assert faces["`race`"][1:] == ("may be empty", "", "by", "Asian") and faces["`variant`"].needed == "yes"
    tuples = found["bistereo-tuples", "data"]
    assert (tuples["`score`"].needed, tuples["`score`"].takes) == ("no", "a number")
    assert (tuples["`standing`"].needed, tuples["`standing`"].takes) == ("yes", "`advantaged`, `disadvantaged`")
