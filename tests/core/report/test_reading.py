"""Figures and tables are read whole: on a phone, on paper, in the dark, by keyboard and by a screen reader."""

from __future__ import annotations

import pytest
from browsed import CONTRAST, OPEN_ALL, OUTSIDE, content, tab_to
from matplotlib.figure import Figure
from msgspec.structs import replace

from prejudge.core.answer.records import Answer, Number, Reply, Row
from prejudge.core.charts.forest import Panel, Point, forest
from prejudge.core.charts.levels import draw_levels
from prejudge.core.contracts.estimates import Chart, Estimate
from prejudge.core.contracts.sizes import State
from prejudge.core.report import Table, render

PHONE, PAPER = 390, 703
"""Widths in pixels: of a phone, and of A4 less the margins of the page."""
LONG = "a name of a model as makers write it, with 70 billion parameters, instruct, quantised"
ON_PAPER = """width => [...document.querySelectorAll('table, figure img')].filter(e => e.checkVisibility()
    && (e.getBoundingClientRect().right > width + 1 || e.getBoundingClientRect().height > 900 && e.tagName === 'IMG'))
    .map(e => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def html():
    """Return a page with a small figure, a wide one, a high one, and one of forty models with long names."""
    small, wide, high = (Figure(figsize=size) for size in ((3, 2), (14, 3), (7, 40)))
    few = forest([Panel("a part", "points", [Point("women", 1.0, 0.5, 1.5, True), Point("men", None, None, None)])])
    share = [Estimate.from_flat(metric="share", group={}, value=n, neutral=50.0, label="Share") for n in range(40)]
    charts = [
        Chart(name, name.title(), "What to see.", f) for name, f in (("small", small), ("wide", wide), ("high", high))
    ]
    charts += [Chart("few", "A forest", "What to see.", few)]
    charts += draw_levels({f"{LONG} {n}": [e] for n, e in enumerate(share)})
    table = Table("counts", tuple(f"column {n}" for n in range(14)), ((LONG, *range(13)),) * 3)
    every = {"low": -100.0, "high": 99.99, "bound_low": -100.0, "bound_high": 100.0, "neutral": 0.0, "clusters": 9}
    every |= {"effect": 22.953, "effect_low": -22.953, "effect_high": 34.295, "statistic": 3.14159, "test": "sign flip"}
    group = {"axis": "skin complexion", "gender": "women", "threshold": 0.02}
    tested = {"p": 0.0123, "p_adjusted": 0.0456, "family": "favouritism, threshold 0.02: 6 tests", "note": LONG}
    wide_row = Estimate.from_flat(metric="m", group=group, value=-88.88, n=123_456, **every, **tested)
    return render(replace(content(), charts=charts, missing=[table], estimates=[wide_row, wide_row]))


def test_phone_cuts_nothing_and_shows_what_scrolls(opened, html):
    page = opened(html, width=PHONE, height=844)
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE and page.evaluate(OUTSIDE, PHONE) == []
    images = page.locator("figure img")
    sizes = images.evaluate_all(
        "all => all.map(e => [e.getBoundingClientRect().width, e.width, +e.getAttribute('width')])"
    )
    assert all(shown == natural for shown, _, natural in sizes)  # letters are as large as on paper
    regions = page.locator("figure > .scroll")
    assert regions.evaluate_all("all => all.map(e => e.tabIndex)")[:2] == [-1, 0]
    wide = regions.nth(1)
    cue = wide.evaluate("e => [e.previousElementSibling.textContent, e.previousElementSibling.checkVisibility()]")
    assert cue[0].startswith("Scroll sideways") and cue[1]
    wide.evaluate("e => { e.scrollLeft = 1e6; }")
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert wide.evaluate("e => e.scrollWidth - e.scrollLeft - e.clientWidth") == 0
    edge = "e => e.querySelector('img').getBoundingClientRect().right <= e.getBoundingClientRect().right + 1"
    assert wide.evaluate(edge)


def test_paper_holds_every_figure_and_table_whole(opened, html):
    page = opened(html, width=PAPER, height=980, media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(ON_PAPER, PAPER) == []
    assert page.evaluate("[...document.querySelectorAll('figure img')].length") == 5
    assert not page.evaluate("[...document.querySelectorAll('.cue, .numbers')].some(e => e.checkVisibility())")
    ratios = page.locator("figure img").evaluate_all(
        "all => all.map(e => e.width / e.height * e.getAttribute('height') / e.getAttribute('width'))"
    )
    assert ratios == pytest.approx([1.0] * 5, rel=0.02)


def test_numbers_open_by_keyboard_and_have_names(opened, html):
    page = opened(html)
    tab_to(page, ".numbers summary")
    assert page.evaluate("document.activeElement.textContent") == "Numbers of figure 4"
    page.keyboard.press("Enter")
    rows = page.locator(".numbers[open] tbody tr").evaluate_all("all => all.map(e => e.innerText.split('\\t'))")
    assert [row[0] for row in rows] == ["women", "men"] and rows[0][1:4] == ["1.000", "0.500", "1.500"]
    assert page.locator(".numbers[open] td [aria-label=undefined]").count() == 3
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    named = {(n["role"]["value"], n["name"]["value"]) for n in tree if not n["ignored"] and n.get("name")}
    assert {("figure", "Figure 4. A forest"), ("image", "A forest. Its numbers follow as a table.")} <= named
    assert ("table", "Figure 4, a part") in named and ("image", "Small") in named


def test_focus_follows_the_page_and_stops_nowhere_twice(opened, html):
    page = opened(html, width=PHONE, height=844)
    places = []
    for _ in range(200):
        page.keyboard.press("Tab")
        at = page.evaluate("""[...document.querySelectorAll('*')].indexOf(document.activeElement)""")
        if at in places or page.evaluate("document.activeElement === document.body"):
            break
        places.append(at)
        box = page.evaluate("(e => [e.left, e.right, e.top, e.bottom])(document.activeElement.getBoundingClientRect())")
        assert -2 <= box[0] and box[0] < PHONE and box[3] > 0 and box[2] < 844
    assert places == sorted(places) and len(places) > 15


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_cues_and_numbers_stand_out(opened, html, scheme):
    page = opened(html, scheme=scheme, width=PHONE, height=844)
    page.evaluate(OPEN_ALL)
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where
    grounds = page.locator("figure img").evaluate_all("all => all.map(e => getComputedStyle(e).backgroundColor)")
    assert set(grounds) == {"rgb(255, 255, 255)"}


def test_page_without_its_script_still_scrolls_by_keyboard(chromium, html, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(html, encoding="utf-8", newline="\n")
    with chromium.new_context(
        offline=True, java_script_enabled=False, viewport={"width": PHONE, "height": 844}
    ) as context:
        page = context.new_page()
        page.goto(path.as_uri())
        assert page.locator(".scroll:not([tabindex='0'])").count() == 0
        assert page.locator("details.numbers").count() == 2


MEANING = "Of 100 such intervals about 95 contain the true value."
AT = "(e => { const {left, right, top, width} = e.getBoundingClientRect(); return [left, right, top, width] })"


@pytest.fixture(scope="module")
def defined():
    """Return a page whose first screen defines a measure, a verdict and the heads of its table."""
    e = Estimate.from_flat(metric="m", group={}, value=2.0, low=1.0, high=3.0, neutral=0.0, label="Praise")
    row = Row(label="Praise", meaning=MEANING, about="", number=Number.of(e), state=State.YES, estimate=e)
    reply = Reply(asks="Is there praise?", state=State.YES, finding="there is", rows=(row,))
    answer = Answer(question="Is there praise?", model="m", replies=(reply,), missing="nothing.")
    return render(replace(content(), answer=answer))


def test_definition_is_there_on_hover_tap_and_key(chromium, defined, tmp_path):
    (path := tmp_path / "report.html").write_text(defined, encoding="utf-8")
    for touch in (False, True):
        size = {"width": PHONE, "height": 844} if touch else {"width": 1200, "height": 900}
        with chromium.new_context(offline=True, has_touch=touch, viewport=size) as context:
            page = context.new_page()
            page.goto(path.as_uri())
            terms = page.locator("#answer .term")
            assert terms.count() >= 4  # the verdict, the measure, intervals, what is missing
            for number in range(terms.count()):
                word, text = terms.nth(number).locator("summary"), terms.nth(number).locator("span")
                if touch:
                    word.tap()
                else:
                    # A pointer reads what the word has as its title; a key opens the same text.
                    word.hover()
                    hovered = page.evaluate("document.querySelector('.term > summary:hover').title")
                    assert hovered == text.text_content()
                    assert not text.is_visible()
                    word.focus()
                    page.keyboard.press("Enter")
                assert text.is_visible() and len(text.inner_text().split()) > 3
                left, right, _, width = text.evaluate(AT)
                inside = terms.nth(number).evaluate("e => !!e.closest('.scroll')")
                assert width > 60 and (inside or (left >= 0 and right <= size["width"]))
                assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
