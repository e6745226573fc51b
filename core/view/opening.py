"""Open the browser at the start link without the link on a command line, which every user of the machine can read."""

from __future__ import annotations

import shutil
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>prejudge view</title>
<meta http-equiv="refresh" content="0; url={url}">
<p><a href="{url}">Go on</a></p>
"""
"""A page that leads to a url. It is sent by the guard, too: the browser takes a cookie along only from its own site."""


def leading_to(url: str) -> str:
    """Return a page that leads a browser to a url."""
    return PAGE.format(url=escape(url))


@contextmanager
def browser_at(link: str) -> Iterator[Callable[[], None]]:
    """Open a browser at a page that leads to a link, and yield what removes the page once the link was used.

    Only the user can read the page, which is removed at the end at the latest.
    """
    folder = Path(tempfile.mkdtemp(prefix="prejudge-view-"))

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    try:
        page = folder / "start.html"
        page.touch(mode=0o600, exist_ok=False)
        page.write_text(leading_to(link), encoding="utf-8")
        if not webbrowser.open(page.as_uri()):
            remove()
        yield remove
    finally:
        remove()
