"""A report in a real browser. Skipped where there is no Chromium."""

from __future__ import annotations

import pytest


@pytest.fixture
def page(chromium):
    with chromium.new_context(offline=True) as context:
        yield context.new_page()


@pytest.fixture
def heard(page):
    """Return what the page does, by the name of the event."""
    events = {name: [] for name in ("dialog", "pageerror", "request", "requestfailed")}
    for name, noted in events.items():
        page.on(name, lambda event, noted=noted: noted.append(event))
    # An open dialog would hold the page for ever.
    page.on("dialog", lambda dialog: dialog.accept())
    return events


@pytest.fixture
def opened(page, tmp_path):
    """Return a function that opens a page, its parts, and waits until it is laid out, a minute at most."""

    def show(html, *, width=1200, height=900, scheme="light", media="screen", parts=True):
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8", newline="\n")
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, media=media)
        page.goto(path.as_uri(), timeout=60_000)
        if parts:
            page.evaluate("document.querySelectorAll('details.part').forEach(fold => fold.open = true)")
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        return page

    return show
