"""The page in a real browser: its own script runs, nobody else's does. Skipped where there is no Chromium."""

from __future__ import annotations

import io

import pytest
from browsed import CONTRAST, OPEN_ALL, content, tab_to
from hostile import HOSTILE, RUN
from msgspec.structs import replace
from playwright.sync_api import expect

from prejudge.core.contracts.estimates import Estimate, Example
from prejudge.core.report import ShownExample, picture, render
from prejudge.core.report.tables import MOST_ROWS

FOLDED = "details.metric summary"


def photo():
    image = pytest.importorskip("PIL.Image", reason="no Pillow to draw an image with")
    image.new("RGB", (900, 600), "green").save(buffer := io.BytesIO(), "PNG")
    return picture(buffer.getvalue())


@pytest.mark.parametrize("payload", HOSTILE)
def test_what_a_model_said_runs_nothing_and_fetches_nothing(opened, heard, payload):
    page = opened(render(content(payload)))
    page.evaluate(OPEN_ALL)
    page.evaluate("""() => {
        for (const node of document.querySelectorAll('main *'))
            for (const kind of ['mouseover', 'focus', 'click'])
                if (!node.closest('a, button, summary')) node.dispatchEvent(new Event(kind, {bubbles: true}));
    }""")
    page.wait_for_timeout(50)
    assert page.evaluate("typeof OWNED + typeof ({}).OWNED") == "undefinedundefined"
    assert heard["dialog"] == heard["pageerror"] == []
    assert [request.url for request in heard["request"]] == [page.url]
    assert page.locator("script").count() == 2
    assert page.locator("iframe, base, form, link, [onerror], [onclick], main meta").count() == 0


def test_policy_stops_what_slipped_in(opened, heard):
    slipped = (
        f"<img src=x onerror='{RUN}'><script>{RUN}</script><img src='http://127.0.0.1:9/'><style>main{{zoom:9}}</style>"
    )
    page = opened(render(content()).replace("</main>", f"{slipped}<a id=j href='javascript:{RUN}'>x</a></main>"))
    page.evaluate("document.querySelector('#j').click()")
    page.wait_for_timeout(50)
    assert page.evaluate("typeof OWNED") == "undefined"
    assert page.evaluate("getComputedStyle(document.querySelector('main')).zoom") == "1"
    assert [request.failure for request in heard["request"]] == [None, "csp", "csp"]


def test_heading_sorts_by_keyboard_both_ways_with_undefined_last(opened):
    page = opened(render(content()))
    read = page.locator("#metric-1 tbody tr td:nth-child(2)")
    page.locator("#metric-1 th button").nth(1).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(read).to_have_text(["item 3", "item 0", "item 2", "item 1"])
    assert page.evaluate("document.activeElement.parentNode.getAttribute('aria-sort')") == "ascending"
    page.keyboard.press("Space")
    expect(read).to_have_text(["item 2", "item 0", "item 3", "item 1"])
    assert page.locator("[aria-sort]").count() == 1


def test_filter_by_keyboard_tells_how_many_it_left(opened):
    page = opened(render(content()))
    tab_to(page, "#estimates input")
    page.keyboard.type("ITEM 2")
    assert page.locator("#estimates tr[data-item]:not([hidden])").count() == 1
    # An <output> is a live region: a screen reader says what comes into it.
    expect(page.locator("#estimates output")).to_have_text("1 of 4")


def test_example_is_covered_until_a_key_opens_it(opened):
    page = opened(render(replace(content(), pictures={"a" * 64: photo()})))
    shown = "document.querySelector('.said').checkVisibility({contentVisibilityAuto: true})"
    image = page.locator(".example img")
    assert not page.evaluate(shown)
    assert image.count() == 0
    tab_to(page, ".example summary")
    page.keyboard.press("Enter")
    expect(image).to_have_attribute("alt", "words aaaaaaaaaaaa")
    assert page.evaluate(shown)
    assert image.evaluate("node => node.decode().then(() => node.naturalWidth)") == 320


def test_search_finds_words_that_are_covered(opened):
    examples = [ShownExample(Example(f"n{i}", {}, ()), (("answer", f"secret {i}"),)) for i in range(3)]
    page = opened(render(replace(content(), examples=examples)))
    tab_to(page, "#examples input")
    page.keyboard.type("secret 2")
    assert page.evaluate("[...document.querySelectorAll('.example')].map(e => e.hidden)") == [True, True, False]


def test_one_button_shows_and_covers_all_examples(opened):
    page = opened(render(content()))
    tab_to(page, "#examples [data-toggle]")
    states = []
    for _ in range(2):
        page.keyboard.press("Enter")
        states.append(page.evaluate("[document.querySelector('.example').open, document.activeElement.ariaPressed]"))
    assert states == [[True, "true"], [False, "false"]]


def test_skip_link_comes_first_and_leads_to_the_results(opened):
    page = opened(render(content()))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_focus_can_be_seen(opened):
    page = opened(render(content()))
    for _ in range(25):
        page.keyboard.press("Tab")
        seen = page.evaluate("(s => s.outlineStyle + s.outlineWidth)(getComputedStyle(document.activeElement))")
        assert seen == "solid3px"


def test_headings_are_in_order(opened):
    levels = opened(render(content())).evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))


def test_regions_and_controls_have_names(opened):
    page = opened(render(content()))
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    named = ("region", "button", "searchbox", "link", "table", "image", "navigation", "heading")
    roles = {node["role"]["value"] for node in tree if not node["ignored"]}
    assert {"main", "navigation", "banner", "status", *named} - {"region"} <= roles
    for node in tree:
        if not node["ignored"] and node["role"]["value"] in named:
            assert node["name"]["value"], node


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(opened, scheme):
    page = opened(render(content()), scheme=scheme)
    page.evaluate(OPEN_ALL)
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where


def test_headline_fits_a_usual_window(opened):
    group = {"axis": "skin complexion", "gender": "women", "threshold": 0.02}
    numbers = {"low": -100.0, "high": 99.99, "bound_low": -100.0, "bound_high": 100.0, "neutral": 0.0}
    effect = {"effect": 22.953, "effect_low": -22.953, "effect_high": 34.295, "p": 0.5, "p_adjusted": 0.9}
    wide = Estimate.from_flat(
        metric="favouritism_log_odds",
        group=group,
        value=-88.88,
        n=123_456,
        missing={"refused": 1234},
        **numbers,
        **effect,
    )
    page = opened(render(replace(content(), estimates=[wide], headline=[wide])), width=1200)
    assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('#answer .scroll'))") == 0


def test_plots_have_a_mark_for_each_state(opened):
    ends = [(0.1, 0.3, 0.0), (-0.1, 0.3, 0.0), (None, None, 0.0), (-0.1, 0.3, None)]
    rows = [
        Estimate.from_flat(metric="m", group={"g": i}, value=0.2, neutral=neutral, low=a, high=b)
        for i, (a, b, neutral) in enumerate(ends)
    ]
    page = opened(render(replace(content(), estimates=rows)))
    marks = "[...document.querySelectorAll('#answer .plot')].map(e => e.lastElementChild)"
    assert page.evaluate(f"{marks}.map(e => e.tagName)") == ["circle", "circle", "path", "circle"]
    fills = page.evaluate(f"{marks}.map(e => getComputedStyle(e).fill)")
    assert fills[3] == fills[0] != fills[1] == fills[2]
    assert "there is no interval" in page.evaluate("document.querySelector('#answer').innerText")


@pytest.mark.parametrize("said", ["words", "x" * 3000, "\u0915\u094d\u0937" * 500])
def test_phone_scrolls_in_one_direction_only(opened, said):
    page = opened(render(content(said)), width=360, height=740)
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_paper_has_all_estimates_and_no_covered_text(opened):
    page = opened(render(content(count=60)), media="print")
    assert not page.evaluate(f"document.querySelector('{FOLDED}').parentNode.open")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details.metric')].every(fold => fold.open)")
    assert not page.evaluate("document.querySelector('.example').open")
    assert not page.evaluate("[...document.querySelectorAll('nav, .tools, .skip')].some(n => n.checkVisibility())")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.evaluate(f"document.querySelector('{FOLDED}').parentNode.open")
    assert page.pdf(print_background=True).startswith(b"%PDF")


def test_long_answer_is_cut_and_says_so(opened):
    example = ShownExample(Example("long", {}, ()), (("answer", "y" * 1_000_000),))
    page = opened(render(replace(content(), examples=[example])))
    said = page.evaluate("document.querySelector('.said').textContent")
    assert len(said) < 21_000 and said.endswith("characters left out]")


def test_long_report_opens_quickly_and_stays_small(opened):
    few = content()
    rows = [few.estimates[0].replace(group={"axis": "height", "cell": f"c{i}"}, p=0.01, test="t") for i in range(5000)]
    texts = tuple((label, "a word and another " * 20) for label in ("prompt", "answer"))
    examples = [
        ShownExample(Example(f"example {i}", {"axis": "height"}, (bytes(32),), 0.5), texts) for i in range(2000)
    ]
    html = render(replace(few, estimates=rows, examples=examples))
    assert len(html.encode()) < 10_000_000
    page = opened(html)
    assert page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") < 3000
    assert page.evaluate("document.querySelectorAll('#estimates tr[data-item]').length") == MOST_ROWS
