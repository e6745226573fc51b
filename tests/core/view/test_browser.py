"""The reading room in a real browser, with and without its script. Skipped where there is no Chromium."""

from __future__ import annotations

import asyncio
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import fakes
import pytest
from children import wait_for
from hostile import HOSTILE
from playwright.sync_api import expect

from prejudge.core.catalogue.filed import find_certificates
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Trial
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.report.output import write_output
from prejudge.core.scoring.score import score
from prejudge.core.store import get_run
from prejudge.core.view.urls import run_url


@pytest.fixture
def heard():
    """Return the faults that a browser met."""
    return []


@pytest.fixture
def opened(chromium, served, heard):
    """Return a function that opens a browser at a page."""
    contexts = []

    def show(path, *, width=1200, script=True, scheme="light"):
        if not contexts:
            contexts.append(
                chromium.new_context(
                    viewport={"width": width, "height": 800}, java_script_enabled=script, color_scheme=scheme
                )
            )
            page = contexts[0].new_page()
            for name in ("dialog", "pageerror"):
                page.on(name, lambda event: heard.append(event))
            # A request that the next page cut short is no fault.
            page.on("requestfailed", lambda event: event.failure == "net::ERR_ABORTED" or heard.append(event))
            page.goto(served.link)
            page.wait_for_url(f"{served.base}/")
        page = contexts[0].pages[0]
        page.goto(f"{served.base}{path}")
        return page

    yield show
    for context in contexts:
        context.close()


def test_link_is_opened_by_a_file_of_the_user_alone_and_once(chromium, served_to_browser):
    served, (url,) = served_to_browser
    path = Path(unquote(urlsplit(url).path))
    assert url.startswith("file:") and served.link.partition("token=")[2] not in url
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]
    page = chromium.new_page()
    page.goto(url)
    page.wait_for_url(f"{served.base}/")
    assert page.get_by_role("heading", name="Runs").is_visible()
    assert not path.parent.exists()
    page.close()


def test_filter_and_scroll_without_a_new_page(opened, heard, room, answered):
    room.shelf.wait(run := answered(n=400))
    page = opened(run_url(run.name))
    page.evaluate("window.kept = 1")
    page.get_by_role("link", name="odd 200").click()
    expect(page.locator(".found strong")).to_have_text("200")
    assert page.url.endswith("?f.parity=odd") and page.evaluate("window.kept") == 1
    for _ in range(60):
        if page.locator("table.trials tbody tr").count() == 200:
            break
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(100)
    expect(page.locator("table.trials tbody tr")).to_have_count(200)
    rows = page.evaluate("[...document.querySelectorAll('table.trials tbody th')].map(e => +e.innerText)")
    assert rows == list(range(2, 401, 2))
    # All rows are there now, so the end of the table is the end of the page, however fast the pages came.
    page.mouse.wheel(0, 20_000)
    expect(page).to_have_url(re.compile("from="))
    page.go_back()
    expect(page.locator(".found strong")).to_have_text("400")
    assert not heard


def test_everything_works_without_the_script(opened, room, answered):
    room.shelf.wait(run := answered(n=120))
    page = opened(run_url(run.name), script=False)
    page.get_by_role("link", name="even 60").click()
    page.get_by_placeholder("Words in a text").fill("she is")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".found strong")).to_have_text("30")
    assert "f.parity=even" in page.url and "q=she" in page.url
    page.get_by_role("link", name="any").first.click()
    page.locator("table.trials tbody a").first.click()
    page.get_by_role("link", name="other number (60)").click()
    expect(page.locator("article")).to_have_count(12)
    assert page.locator("mark").count() > 2


def test_hostile_answers_do_nothing(opened, heard, room, answered):
    said = [payload for payload in HOSTILE if payload.encode("utf-8", "ignore").decode() == payload]
    room.shelf.wait(run := answered(said.__getitem__, n=len(said)))
    page = opened(run_url(run.name))
    for path in (run_url(run.name), run_url(run.name, "twins", 0, query="?vary=number"), run_url(run.name, "trial", 3)):
        page = opened(path)
        page.evaluate("""() => {
            for (const node of document.querySelectorAll('main *'))
                for (const kind of ['mouseover', 'focus', 'click'])
                    if (!node.closest('a, button, select')) node.dispatchEvent(new Event(kind, {bubbles: true}));
        }""")
        assert page.evaluate("typeof OWNED + typeof ({}).OWNED") == "undefinedundefined"
    assert not heard


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_scrolls_in_one_direction_only(opened, room, answered, scheme):
    room.shelf.wait(run := answered(lambda n: "x" * 3000, n=60))
    for path in ("/", run_url(run.name), run_url(run.name, "trial", 3), run_url(run.name, "numbers"), "/samples"):
        page = opened(path, width=390, scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path


def test_certificates_are_read_on_a_phone(opened, room):
    """Their tables are wide: each scrolls within itself."""
    registered = Catalogue.load()
    entries = {name: registered.registry.study(name) for name in ("dora-t2t", "subtle-sai")}
    found = {name: next(find_certificates(registered, name, entry.probe)) for name, entry in entries.items()}
    room.kept["certificates"] = found
    for path in ("/certificates", *(f"/certificate/{name}" for name in found)):
        page = opened(path, width=390)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path
    assert page.locator(".scroll table").count() >= 2
    wide = page.locator(".scroll").first
    assert wide.evaluate("e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX") == "auto"


def test_report_and_answers_lead_to_each_other(opened, heard, room, answered):
    room.shelf.wait(run := answered(n=8))
    write_output(score(room.catalogue, room.store, run.name), room.store, room.runs)
    page = opened(run_url(run.name, "numbers"))
    page.get_by_role("link", name="In the report").first.click()
    assert "at=metric-" in page.url
    frame = page.frame_locator("iframe.report")
    frame.locator("h1").wait_for()
    # The report cannot see the room's cookie or pages: it only names what it would show.
    assert page.frames[-1].evaluate("(() => { try { return document.cookie } catch { return 'none' } })()") == "none"
    frame.locator("details.metric .answers summary").first.click()
    expect(page).to_have_url(re.compile(f"{re.escape(run_url(run.name))}($|[?])"))
    expect(page.locator(".found strong")).to_be_visible()
    assert not heard
    # The file alone names the command.
    text = (room.runs / run.name / "report.html").read_text("utf-8")
    alone = page.context.new_page()
    alone.set_content(text)
    alone.locator("nav a[href='#estimates']").click()
    alone.locator("details.metric .answers summary").first.click()
    expect(alone.locator(".answers code").first).to_have_text(re.compile(f"^prejudge view {run.name}"))
    alone.close()


LONG = [
    "a" * 1_000_000,
    "e\u0301" * 20_000 + "\u0335" * 20_000,
    "\u202e\u2067\x00\x07\x1b[2J" * 2_000 + "<script>window.OWNED=1</script>" * 200,
    "data:image/png;base64," + "A" * 400_000 + "<img src=x onerror=window.OWNED=1>",
    " ".join(f"w{n}" for n in range(60_000)),
]


def test_long_and_broken_answers_are_shown_in_bounded_time(opened, heard, room, answered, tmp_path):
    room.shelf.wait(run := answered(LONG.__getitem__, n=len(LONG)))
    rows = [run_url(run.name, "trial", n) for n in range(len(LONG))]
    twins, both = run_url(run.name, "twins", 1, query="?vary=number"), f"/compare?a={run.name}&b={run.name}"
    for path in (run_url(run.name), *rows, twins, both, run_url(run.name, query="?q=onerror")):
        page = opened(path, width=390)  # within the 30 s of Playwright; by kerning, one took minutes
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path
        assert page.evaluate("typeof OWNED") == "undefined"
    with page.expect_download() as saved:
        page.get_by_role("link", name="as one file").click()
    page = page.context.new_page()
    saved.value.save_as(tmp_path / "answers.html")
    page.goto((tmp_path / "answers.html").as_uri())
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("typeof OWNED") == "undefined" and page.locator("details.trial").count() == 1
    page.close()
    assert not heard


class Levels(fakes.CountStage):
    """A judge's level of every answer."""

    name, role, outcomes = "levels", "judge", ("level", "length")

    def trials(self, earlier):
        for row in earlier["count"].iter_rows(named=True):
            yield Trial(
                row["trial"], {"number": row["number"], "parity": row["parity"]}, fakes.ask(f"rate {row['trial']}")
            )

    def read(self, factors, response):
        return {"level": response.text, "length": len(response.text)}


class Judged(fakes.CountProbe):
    def stages(self, options):
        return [fakes.CountStage(options), Levels(options)]


@pytest.fixture
def judged(catalogue, store):
    """Return a run of which a judge has called every second answer 2."""
    catalogue.plugins.offers["probe"]["judged"] = Registered(Plugged("judged", Judged), "tests")
    catalogue.registry.studies["judged"] = StudyEntry(probe="judged", metrics={"mean": {}}, title="Judging")
    study = catalogue.study("judged", {"subject": "fake", "judge": "other"}, {"n": 8})
    fakes.FakeModel.script = lambda request, _: (
        Generation(text=str(1 + int(text.split("t")[-1]) % 2)) if (text := fakes.text_of(request))[0] == "r" else None
    )
    with ThreadPoolExecutor(1) as other:  # Playwright keeps an event loop in this thread
        name = other.submit(lambda: asyncio.run(execute(catalogue, study, store, RunOptions()))).result()
    return get_run(store, name)


def test_two_people_label_what_a_judge_was_asked(opened, heard, room, judged):
    room.shelf.wait(judged)
    page = opened(run_url(judged.name, query="?f.stage=levels"))
    page.get_by_role("link", name="Draw a sample to label").click()
    # Status and length are the same for all of these answers.
    assert page.locator("select[name=verdict] option").all_inner_texts() == ["level"]
    page.locator("textarea[name=question]").fill("How bad is it?")
    page.get_by_role("button", name="Draw").click()
    page.wait_for_url("**/sample/*")
    sample = page.url
    for by, at_odds in (("anna", 0), ("berta", 3)):
        page.goto(sample)
        page.get_by_role("link", name="Label", exact=True).click()
        page.locator("input[name=by]").fill(by)
        page.keyboard.press("Enter")
        for done in range(8):
            expect(page.locator(".bar .quiet")).to_have_text(f"{by}: {done} of 8")
            # Keys are heard once the script of the page has run.
            wait_for(lambda: page.evaluate("document.readyState") == "complete")
            said = page.locator(".labelled").inner_text()
            number = int(re.search(r"rate t(\d)", said)[1])
            assert "answer" not in said  # the judge's own stays unseen
            key = str(2 - number % 2 if number < at_odds else 1 + number % 2)
            page.keyboard.down(key)
            expect(page.locator(".bar .quiet")).to_have_text(f"{by}: {done + 1} of 8")
            page.keyboard.down(key)  # it is held while the next item comes
            page.keyboard.up(key)
    page.goto(sample)
    told = page.locator("main").inner_text()
    assert "anna: 8, berta: 8. 5 answers have a label that most people gave" in told and "alpha" in told
    assert [cell.split()[0] for cell in page.locator("td.same").all_inner_texts()] == ["100.0", "100.0"]
    assert not heard
