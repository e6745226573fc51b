"""The page in a real browser: its own script runs, nobody else's does. Skipped where there is no Chromium."""

from __future__ import annotations

import io

import browser as browsers
import pytest
from browser import HOSTILE, RUN
from matplotlib.figure import Figure
from msgspec.structs import replace

from prejudge.core.adapter import Identity
from prejudge.core.estimates import Chart, Estimate, Example
from prejudge.core.report import Picture, Published, ReportContent, ShownExample, StudyInfo, Table, picture, render

FOLDED = "details.metric summary"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if (reason := browsers.missing()) is not None:
        pytest.skip(reason)
    started = browsers.Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens a page."""

    def show(page, **how):
        path = tmp_path / "report.html"
        path.write_text(page, encoding="utf-8", newline="\n")
        seconds = browser.open(path, **how)
        assert seconds < 60
        return browser

    return show


def photo():
    image = pytest.importorskip("PIL.Image", reason="no Pillow to draw an image with")
    image.new("RGB", (900, 600), "green").save(buffer := io.BytesIO(), "PNG")
    return picture(buffer.getvalue())


def content(said="words", count=4):
    """Return a report in which a model's words stand wherever they could."""
    values = [0.2, None, 10.0, -1.0]
    rows = [
        Estimate(metric=said, group={"axis": said, "item": f"item {i}"}, value=values[i % 4], neutral=0.0, low=-2.0)
        for i in range(count)
    ]
    rows += [replace(rows[0], topic=topic, metric=f"{topic} {said}") for topic in ("missing", "position")]
    example = ShownExample(Example(said, {"axis": said}, (b"\1",), 0.5, said), ((said, said),), ((said, "a" * 64),))
    return ReportContent(
        title=said,
        study=StudyInfo(name=said, url=said, summary=said, citation=said),
        models={"subject": Identity(adapter=said, version=said, model=said, digest=said, settings={said: said})},
        names={"subject": said},
        when=said,
        estimates=rows,
        conclusions={said: said},
        charts=[Chart("chart", said.replace("$", ""), said, Figure(figsize=(6, 2)))],
        published=[Published(metric=said, published=0.5, note=said)],
        missing=[Table(said, (said, "n"), ((said, 3),))],
        examples=[example],
        pictures={"a" * 64: Picture("image/png", b"no image", said)},
        warnings=[said],
        methods=[said],
        limits=[said],
        deviations=[said],
        provenance={said: [said, {said: said}]},
    )


def requests(browser):
    """Return the addresses that were asked of a network; what the page itself is made of is none."""
    asked = [event["request"]["url"] for event in browser.said("Network.requestWillBeSent")]
    return [url for url in asked if not url.startswith(("file:", "data:"))]


@pytest.mark.parametrize("payload", HOSTILE)
def test_what_a_model_said_runs_nothing_and_fetches_nothing(opened, payload):
    browser = opened(render(content(payload)))
    browser.js("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    browser.js("""
        for (const node of document.querySelectorAll('main *'))
            for (const kind of ['mouseover', 'focus', 'click'])
                if (!node.closest('a, button, summary')) node.dispatchEvent(new Event(kind, {bubbles: true}));
        new Promise(done => setTimeout(done, 50))""")
    assert browser.js("typeof OWNED + typeof ({}).OWNED") == "undefinedundefined"
    assert browser.said("Page.javascriptDialogOpening") == []
    assert browser.said("Runtime.exceptionThrown") == []
    assert requests(browser) == []
    assert browser.js("document.querySelectorAll('script').length") == 2
    assert (
        browser.js("document.querySelectorAll('iframe, base, form, link, [onerror], [onclick], main meta').length") == 0
    )


def test_policy_stops_what_slipped_in(opened):
    slipped = (
        f"<img src=x onerror='{RUN}'><script>{RUN}</script><img src='http://127.0.0.1:9/'><style>main{{zoom:9}}</style>"
    )
    browser = opened(render(content()).replace("</main>", f"{slipped}<a id=j href='javascript:{RUN}'>x</a></main>"))
    browser.js("document.querySelector('#j').click(); new Promise(done => setTimeout(done, 50))")
    assert browser.js("typeof OWNED") == "undefined"
    assert browser.js("getComputedStyle(document.querySelector('main')).zoom") == "1"
    blocked = [event.get("blockedReason") for event in browser.said("Network.loadingFailed")]
    assert len(requests(browser)) <= len(blocked) and set(blocked) <= {"csp"}


def test_heading_sorts_by_keyboard_both_ways_with_undefined_last(opened):
    browser = opened(render(content()))
    read = "[...document.querySelectorAll('#metric-1 tbody tr')].map(r => r.cells[1].textContent).join()"
    browser.js("document.querySelectorAll('#metric-1 th button')[1].focus()")
    browser.press("Tab", "Enter")
    assert browser.js(read) == "item 3,item 0,item 2,item 1"
    assert browser.js("document.activeElement.parentNode.getAttribute('aria-sort')") == "ascending"
    browser.press("Space")
    assert browser.js(read) == "item 2,item 0,item 3,item 1"
    assert browser.js("document.querySelectorAll('[aria-sort]').length") == 1


def test_filter_by_keyboard_tells_how_many_it_left(opened):
    browser = opened(render(content()))
    browser.tab_to("#estimates input")
    browser.type("ITEM 2")
    assert browser.js("[...document.querySelectorAll('#estimates tr[data-item]')].filter(r => !r.hidden).length") == 1
    # An <output> is a live region: a screen reader says what comes into it.
    assert browser.js("document.querySelector('#estimates output').value") == "1 of 4"


def test_example_is_covered_until_a_key_opens_it(opened):
    browser = opened(render(replace(content(), pictures={"a" * 64: photo()})))
    shown = "document.querySelector('.said').checkVisibility({contentVisibilityAuto: true})"
    assert not browser.js(shown)
    assert browser.js("document.querySelectorAll('.example img').length") == 0
    browser.tab_to(".example summary")
    browser.press("Enter")
    assert browser.js(shown)
    assert browser.js("document.querySelector('.example img').decode().then(() => true)")
    assert browser.js("document.querySelector('.example img').naturalWidth") == 320
    assert browser.js("document.querySelector('.example img').alt") == "words aaaaaaaaaaaa"


def test_search_finds_words_that_are_covered(opened):
    examples = [ShownExample(Example(f"n{i}", {}, ()), (("answer", f"secret {i}"),)) for i in range(3)]
    browser = opened(render(replace(content(), examples=examples)))
    browser.tab_to("#examples input")
    browser.type("secret 2")
    assert browser.js("[...document.querySelectorAll('.example')].map(e => e.hidden)") == [True, True, False]


def test_one_button_shows_and_covers_all_examples(opened):
    browser = opened(render(content()))
    browser.tab_to("#examples [data-toggle]")
    states = []
    for _ in range(2):
        browser.press("Enter")
        states.append(browser.js("[document.querySelector('.example').open, document.activeElement.ariaPressed]"))
    assert states == [[True, "true"], [False, "false"]]


def test_skip_link_comes_first_and_leads_to_the_results(opened):
    browser = opened(render(content()))
    browser.press("Tab")
    assert browser.js("document.activeElement.getBoundingClientRect().left") >= 0
    browser.press("Enter")
    assert browser.js("document.activeElement.id") == "main"


def test_focus_can_be_seen(opened):
    browser = opened(render(content()))
    for _ in range(25):
        browser.press("Tab")
        seen = browser.js("(s => s.outlineStyle + s.outlineWidth)(getComputedStyle(document.activeElement))")
        assert seen == "solid3px"


def test_headings_are_in_order(opened):
    levels = opened(render(content())).js("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))


def test_regions_and_controls_have_names(opened):
    browser = opened(render(content()))
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    named = ("region", "button", "searchbox", "link", "table", "image", "navigation", "heading")
    roles = {node["role"]["value"] for node in tree if not node["ignored"]}
    assert {"main", "navigation", "banner", "status", *named} - {"region"} <= roles
    for node in tree:
        if not node["ignored"] and node["role"]["value"] in named:
            assert node["name"]["value"], node


CONTRAST = """
(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = css => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
                       return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
                                        .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const ground = node => { for (; node; node = node.parentElement) {
      const found = rgb(getComputedStyle(node).backgroundColor); if (found[3] === 255) return found; }
      return [255, 255, 255]; };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let least = [99, ''];
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || ['SCRIPT', 'NOSCRIPT'].includes(node.tagName)) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < least[0]) least = [ratio, node.outerHTML.slice(0, 80)];
  }
  return least;
})()
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground(opened, dark):
    browser = opened(render(content()), dark=dark)
    browser.js("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    ratio, where = browser.js(CONTRAST)
    assert ratio >= 4.5, where


def test_headline_fits_a_usual_window(opened):
    group = {"axis": "skin complexion", "gender": "women", "threshold": 0.02}
    numbers = {"low": -100.0, "high": 99.99, "bound_low": -100.0, "bound_high": 100.0, "neutral": 0.0}
    effect = {"effect": 22.953, "effect_low": -22.953, "effect_high": 34.295, "p": 0.5, "p_adjusted": 0.9}
    wide = Estimate(
        metric="favouritism_log_odds",
        group=group,
        value=-88.88,
        n=123_456,
        missing={"refused": 1234},
        **numbers,
        **effect,
    )
    browser = opened(render(replace(content(), estimates=[wide], headline=[wide])), width=1200)
    assert browser.js("(e => e.scrollWidth - e.clientWidth)(document.querySelector('#answer .scroll'))") == 0


def test_plots_have_a_mark_for_each_state(opened):
    ends = [(0.1, 0.3), (-0.1, 0.3), (None, None)]
    rows = [
        Estimate(metric="m", group={"g": i}, value=0.2, neutral=0.0, low=a, high=b) for i, (a, b) in enumerate(ends)
    ]
    browser = opened(render(replace(content(), estimates=rows)))
    marks = "[...document.querySelectorAll('#answer .plot')].map(e => e.lastElementChild)"
    assert browser.js(f"{marks}.map(e => e.tagName)") == ["circle", "circle", "path"]
    fills = browser.js(f"{marks}.map(e => getComputedStyle(e).fill)")
    assert fills[0] != fills[1] == fills[2]
    assert "there is no interval" in browser.js("document.querySelector('#answer').innerText")


@pytest.mark.parametrize("said", ["words", "x" * 3000, "\u0915\u094d\u0937" * 500])
def test_phone_scrolls_in_one_direction_only(opened, said):
    browser = opened(render(content(said)), width=360, height=740)
    browser.js("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    assert browser.js("document.documentElement.scrollWidth") == 360


def test_paper_has_all_estimates_and_no_covered_text(opened):
    browser = opened(render(content(count=60)), print_=True)
    assert not browser.js(f"document.querySelector('{FOLDED}').parentNode.open")
    browser.js("dispatchEvent(new Event('beforeprint'))")
    assert browser.js("[...document.querySelectorAll('details.metric')].every(fold => fold.open)")
    assert not browser.js("document.querySelector('.example').open")
    assert not browser.js("[...document.querySelectorAll('nav, .tools, .skip')].some(node => node.checkVisibility())")
    browser.js("dispatchEvent(new Event('afterprint'))")
    assert not browser.js(f"document.querySelector('{FOLDED}').parentNode.open")
    assert browser.pdf().startswith(b"%PDF")


def test_long_answer_is_cut_and_says_so(opened):
    example = ShownExample(Example("long", {}, ()), (("answer", "y" * 1_000_000),))
    browser = opened(render(replace(content(), examples=[example])))
    said = browser.js("document.querySelector('.said').textContent")
    assert len(said) < 21_000 and said.endswith("characters left out]")


def test_long_report_opens_quickly_and_stays_small(opened):
    few = content()
    rows = [replace(few.estimates[0], group={"axis": "height", "cell": f"c{i}"}, p=0.01, test="t") for i in range(5000)]
    texts = tuple((label, "a word and another " * 20) for label in ("prompt", "answer"))
    examples = [
        ShownExample(Example(f"example {i}", {"axis": "height"}, (bytes(32),), 0.5), texts) for i in range(2000)
    ]
    page = render(replace(few, estimates=rows, examples=examples))
    assert len(page.encode()) < 10_000_000
    browser = opened(page)
    assert browser.js("performance.getEntriesByType('navigation')[0].loadEventEnd") < 3000
    assert browser.js("document.querySelectorAll('#estimates tr[data-item]').length") == 5000
