"""Every part after the first screen stands behind a heading: by link, keyboard, screen reader, on paper."""

from __future__ import annotations

import pytest
from browsed import content, tab_to
from playwright.sync_api import expect

from prejudge.core.report import render

PARTS = "details.part"
SHOWN = "document.querySelector('#figures img').checkVisibility()"


@pytest.fixture(scope="module")
def html():
    return render(content())


def test_parts_are_closed_and_links_open_them(opened, html):
    page = opened(html, parts=False, width=390)
    assert page.locator(f"{PARTS}[open]").count() == 0 < page.locator(PARTS).count()
    assert not page.evaluate(SHOWN)
    for link in page.locator("nav a").all():
        link.click()
        part = page.locator(link.get_attribute("href"))
        expect(part).to_be_visible()
        box = part.bounding_box()
        assert -1 <= box["y"] < page.viewport_size["height"]
    assert page.locator(f"{PARTS}:not([open])").count() == 0


def test_address_of_a_measure_opens_its_part(opened, html):
    page = opened(html, parts=False)
    page.evaluate("location.hash = '#metric-1'")
    expect(page.locator("#metric-1 table")).to_be_visible()


def test_part_opens_by_key_and_tells_a_screen_reader(opened, html):
    page = opened(html, parts=False)
    tab_to(page, f"{PARTS}:has(#figures) > summary")
    session = page.context.new_cdp_session(page)

    def triangle():
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        own = [n for n in nodes if not n["ignored"] and n.get("name", {}).get("value", "").startswith("Figures")]
        told = [n for n in own if any(p["name"] == "expanded" for p in n.get("properties", ()))]
        return [p["value"]["value"] for p in told[0]["properties"] if p["name"] == "expanded"]

    assert triangle() == [False]
    page.keyboard.press("Enter")
    assert page.evaluate(SHOWN) and triangle() == [True]


def test_one_button_opens_and_closes_all_parts(opened, html):
    page = opened(html, parts=False)
    button = page.locator("[data-parts]")
    button.click()
    assert page.locator(f"{PARTS}:not([open])").count() == 0
    expect(button).to_have_text("Close all parts")
    button.click()
    assert page.locator(f"{PARTS}[open]").count() == 0


def test_without_its_script_links_open_and_paper_is_whole(chromium, html, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(html, encoding="utf-8", newline="\n")
    with chromium.new_context(offline=True, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{path.as_uri()}#limits")
        expect(page.locator("#limits")).to_be_visible()
        expect(page.locator("#figures img")).to_be_hidden()
        page.emulate_media(media="print")
        assert page.locator("#figures img").bounding_box()["height"] > 50
        assert page.locator("#metric-1 td").first.bounding_box()["height"] > 5


def test_answers_behind_a_number_are_named_without_the_script(opened):
    from msgspec.structs import replace

    page = opened(render(replace(content(), provenance={"run": "20261123-a run"})))
    page.locator(".answers summary").first.click()
    told = page.locator(".answers[open] code").first.inner_text()
    assert told == "prejudge view '20261123-a run' --filter axis=words --filter 'item=item 0'"
