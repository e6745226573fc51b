"""Two people label answers of a reader and of a classifier in a real browser, in studies of the package."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from children import wait_for
from playwright.sync_api import expect

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.store import get_run
from prejudge.core.view.room import Room
from prejudge.core.view.urls import run_url


@pytest.fixture
def room(store, tmp_path):
    """Return a room over the catalogue of the package."""
    return Room(store, Catalogue.load(), tmp_path / "runs", tmp_path / "cache")


@pytest.fixture
def opened(chromium, served):
    with chromium.new_context(viewport={"width": 1200, "height": 800}) as context:
        page = context.new_page()
        page.goto(served.link)
        yield page


def label(page, sample, by, chosen, seen):
    """Label all items of a sample as one person."""
    page.goto(sample)
    page.get_by_role("link", name="Label", exact=True).click()
    page.locator("input[name=by]").fill(by)
    page.keyboard.press("Enter")
    for done in range(len(chosen)):
        expect(page.locator(".bar .quiet")).to_have_text(f"{by}: {done} of {len(chosen)}")
        wait_for(lambda: page.evaluate("document.readyState") == "complete")
        # A classifier's answer is its verdict, so that people see only what it was asked.
        assert page.locator(".labelled h3").all_inner_texts().count("answer") == seen
        item = page.locator("input[name=item]").input_value()
        page.locator(f"button[name=label][value='{chosen[item]}']").click()
    expect(page.locator(".bar .quiet")).to_have_text(f"{by}: {len(chosen)} of {len(chosen)}")


@pytest.mark.parametrize(
    ("study", "verdict", "seen"),
    [("subtle-sai", "chosen", True), ("bistereo-nli", "label", False)],
    ids=["reader", "classifier"],
)
def test_two_people_label_a_study(opened, served, room, place, tmp_path, study, verdict, seen):
    settings = prejudge.Settings(store=place, runs=str(tmp_path / "runs"))
    with ThreadPoolExecutor(1) as other:  # Playwright keeps an event loop in this thread
        made = other.submit(prejudge.run, study, "simulated-biased", settings, per_cell=1).result()
    room.shelf.wait(run := get_run(room.store, made.name))
    page = opened
    page.goto(f"{served.base}{run_url(run.name)}")
    page.get_by_role("link", name="Draw a sample to label").click()
    assert verdict in page.locator("select[name=verdict] option").all_inner_texts()
    page.locator("select[name=verdict]").select_option(verdict)
    page.get_by_role("button", name="Take it").click()
    labels = page.locator("textarea[name=labels]").input_value().split()
    page.locator("textarea[name=question]").fill("What does it say?")
    page.locator("input[name=n]").fill("6")
    page.get_by_role("button", name="Draw").click()
    page.wait_for_url("**/sample/*")
    sample = page.url
    design = json.loads((tmp_path / "samples" / sample.rsplit("/", 1)[1] / "design.json").read_text())
    verdicts = {one["item"]: design["strata"][one["stratum"]]["verdict"] for one in design["items"]}
    items = sorted(verdicts)
    other = {word: labels[n - 1] for n, word in enumerate(labels)}
    gold = verdicts | {items[0]: other[verdicts[items[0]]]}  # where both people say that the verdict errs
    at_odds = gold | {items[1]: other[gold[items[1]]]}
    label(page, sample, "anna", gold, seen)
    label(page, sample, "berta", at_odds, seen)
    page.goto(sample)
    told = page.locator("main").inner_text()
    assert f"{len(items) - 1} answers have a label that most people gave; 1 have none" in told and "alpha" in told
    counts = {
        (a, b): sum(verdicts[i] == a and gold[i] == b for i in items if i != items[1]) for a in labels for b in labels
    }
    rows = page.locator("table.rates tbody tr").all()[: len(labels)]
    found = {
        (row.locator("th").inner_text(), word): int(cell.locator(".quiet").last.inner_text().split()[0])
        for row in rows
        for word, cell in zip(labels, row.locator("td").all(), strict=True)
    }
    assert found == counts
    shares = page.get_by_role("region", name="Shares").locator("tbody tr")
    raw = {
        row.locator("td").nth(0).inner_text(): row.locator("td").nth(1).inner_text()
        for row in shares.all()
        if row.locator("th").inner_text() == "all"
    }
    sizes = {one["verdict"]: 0 for one in design["strata"]}
    for one in design["strata"]:
        sizes[one["verdict"]] += one["size"]
    assert raw == {word: f"{100 * sizes[word] / design['population']:.1f} %" for word in labels}
