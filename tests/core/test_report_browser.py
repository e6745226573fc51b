"""The page in a real browser: its own script runs, nobody else's does. Skipped where there is no Chromium."""

import re
import shutil
import subprocess

import pytest

from prejudge.core.estimates import Estimate, Example
from prejudge.core.report import ReportContent, ShownExample, StudyInfo, render

ATTACK = "</script></title><img src=x onerror=\"document.title='OWNED'\"><svg onload=\"document.title='OWNED'\">"


@pytest.fixture
def dump(tmp_path):
    """Return a function that loads a page and gives its document after the scripts ran."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on the PATH: the page is not tried in a browser")

    def run(page):
        path = tmp_path / "report.html"
        path.write_text(page, encoding="utf-8")
        flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        flags += f"--disable-component-update --disable-sync --user-data-dir={tmp_path / 'profile'} --dump-dom"
        done = subprocess.run(
            [browser, *flags.split(), path.as_uri()], capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout

    return run


def content(said="a text"):
    values = [0.2, None, 10.0, -1.0]
    rows = [Estimate(metric=said, group={"axis": said, "item": f"item {i}"}, value=v) for i, v in enumerate(values)]
    example = ShownExample(Example(said, {"axis": said}, ()), ((said, said),))
    return ReportContent(
        title=said, study=StudyInfo(name=said, url=said), models={}, estimates=rows, examples=[example], warnings=[said]
    )


def driven(script):
    """Return a page that a test drives: its policy, which would refuse the test's own script, is taken out."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", render(content()))
    return page.replace("</body>", f"<script>{script}</script></body>")


def test_only_the_page_s_own_script_runs(dump):
    document = dump(render(content(ATTACK)))
    assert "<title>OWNED" not in document
    assert '<div class="tools" data-script="">' in document  # shown by the script, so the policy lets it run


def test_policy_stops_a_script_that_slipped_in(dump):
    page = render(content()).replace("</main>", "<img src=x onerror=\"document.title='OWNED'\"></main>")
    assert "<title>OWNED" not in dump(page)


def test_heading_sorts_both_ways_with_undefined_last(dump):
    click = "document.querySelectorAll('table.sortable th button')[2].click();"
    read = "[...document.querySelectorAll('table.sortable tbody tr')].map(r => r.cells[1].textContent.trim()).join()"
    document = dump(driven(f"{click} let t = {read}; {click} document.title = t + ' / ' + {read};"))
    assert "<title>item 3,item 0,item 2,item 1 / item 2,item 0,item 3,item 1</title>" in document


def test_filter_hides_what_does_not_match(dump):
    script = """
    const input = document.querySelector('#estimates input');
    input.value = 'ITEM 2'; input.dispatchEvent(new Event('input'));
    const shown = [...document.querySelectorAll('#estimates [data-item]')].filter(r => !r.hidden).length;
    document.title = shown + ' shown, ' + document.querySelector('#estimates output').value;
    """
    assert "<title>1 shown, 1 of 4</title>" in dump(driven(script))


def test_one_button_shows_and_covers_all_examples(dump):
    click = "document.querySelector('#examples [data-toggle]').click();"
    read = "document.querySelector('details.example').open"
    document = dump(driven(f"let t = [{read}]; {click} t.push({read}); {click} t.push({read}); document.title = t;"))
    assert "<title>false,true,false</title>" in document
