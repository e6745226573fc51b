"""The page of a convergence in a real browser, on a phone. Skipped where there is no Chromium."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from browsed import OPEN_ALL, OUTSIDE

import prejudge
from prejudge.core.catalogue.study import Catalogue

from .looks import looks

PHONE = 390
LONG = "a-name-of-a-model-as-makers-write-it-with-70-billion-parameters-instruct-quantised"
CONSTRUCT = looks(per_cell=4, sentences="sentences-about-people-with-a-name-that-is-long")


@pytest.fixture
def written(tmp_path):
    """Return the page of two constructs and three models, of which one has a long name."""
    for name in ("looks", "again"):
        (tmp_path / f"{name}.toml").write_text(CONSTRUCT)
    lists = Catalogue.load().registry.models["simulated-fair"].settings
    words = {name: lists[name] for name in ("positive", "negative")}
    entry = "\n".join(f"{name} = {json.dumps(value)}" for name, value in (words | {"strength": 2.0}).items())
    (tmp_path / "models.toml").write_text(
        f'[models.{LONG}]\nadapter = "simulated"\n[models.{LONG}.settings]\n{entry}\n'
    )
    settings = prejudge.Settings(
        store=str(tmp_path / "store.db"), runs=str(tmp_path / "runs"), registry=str(tmp_path / "models.toml")
    )
    constructs = [str(tmp_path / f"{name}.toml") for name in ("looks", "again")]
    models = [LONG, "simulated-fair", "simulated-biased"]
    with ThreadPoolExecutor(1) as other:  # Playwright keeps an event loop in this thread
        return other.submit(prejudge.converge, constructs, models, settings).result().report


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_cuts_nothing_and_says_what_scrolls(chromium, written, scheme):
    with chromium.new_context(offline=True, viewport={"width": PHONE, "height": 844}, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(written.as_uri())
        page.evaluate(OPEN_ALL)
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE and page.evaluate(OUTSIDE, PHONE) == []
        scrolled = page.evaluate("""() => [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth >
            e.clientWidth + 1).map(e => [!!e.querySelector('img'), e.tabIndex, getComputedStyle(e).overflowX,
            e.previousElementSibling.matches('.cue') && e.previousElementSibling.checkVisibility()])""")
        assert {tuple(rest) for _, *rest in scrolled} == {(0, "auto", True)}
        assert {figure for figure, *_ in scrolled} == {True, False}  # the forest and the tables
        for image in page.locator("figure img").all():
            assert (
                image.evaluate("e => [e.getBoundingClientRect().width, +e.getAttribute('width')]")
                == [pytest.approx(image.evaluate("e => +e.getAttribute('width')"))] * 2
            )  # letters are as large as on paper
