"""Render a `ReportContent` as one self-contained HTML page.

Two measures protect the reader's browser from answers of models: every value is cleaned and escaped in the template,
and the page's content security policy allows only the one script and the one style whose hashes it names.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache, partial
from hashlib import sha256
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup
from msgspec.structs import replace

from ..answer import DEFINITIONS
from ..contracts.errors import UsageError
from ..contracts.estimates import MISSING, POSITION, PREFERENCE
from ..contracts.words import number
from .content import ReportContent, ShownExample, Table
from .figures import Drawing, draw, export
from .forest import forest_of
from .grid import plain_grid
from .pictures import island
from .tables import answer, filters, headline, published_grid, sections
from .text import MOST_CHARACTERS, clean, group_words, settings_words, shorten, web_link

MOST_EXAMPLES = 2_000
MOST_TEXT = 2_500_000
"""Maximum number of characters of all examples together."""


def render(content: ReportContent) -> str:
    """Return the page as a string; the same content gives the same page."""
    return _page(content, draw(content.charts))


def write(content: ReportContent, folder: Path, more_formats: Sequence[str] = ()) -> Path:
    """Write `report.html`, and each figure under `figures/` as SVG and in more formats; return the path of the page.

    Raises `UsageError` if the folder cannot be written.
    """
    drawings = draw(content.charts)
    page = _page(content, drawings)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # newline: the hashes in the policy are of text with line feeds only.
        (folder / "report.html").write_text(page, encoding="utf-8", newline="\n")
        _write_figures(content, drawings, folder / "figures", ("svg", *more_formats))
    except OSError as error:
        raise UsageError(
            f"cannot write the report: {error.strerror or error} ({str(folder)!r}). "
            "Free some space, or name another folder with --runs.",
            code="file.unwritable",
        ) from error
    return folder / "report.html"


def _write_figures(content: ReportContent, drawings: Sequence[Drawing], folder: Path, formats: Sequence[str]) -> None:
    for chart, drawing in zip(content.charts, drawings, strict=True):
        for kind in formats if drawing.svg else ():
            folder.mkdir(exist_ok=True)
            data = drawing.svg if kind == "svg" else export(chart, kind)
            (folder / f"{drawing.file}.{kind}").write_bytes(data)


def _page(content: ReportContent, drawings: Sequence[Drawing]) -> str:
    style, script = _resource("report.css"), _resource("report.js")
    template = _environment().get_template("report.html")
    examples, left_out = _examples(content)
    return template.render(
        content=content,
        examples=examples,
        left_out=left_out,
        pictures=island(content.pictures),
        drawings=drawings,
        answer=content.answer,
        forests=[] if content.answer is None else [forest_of(reply) for reply in content.answer.replies],
        means=DEFINITIONS,
        headline=headline(content.estimates, content.headline),
        fallback=answer(content.headline or content.estimates),
        sections=sections(content.estimates),
        missing_sections=sections(content.estimates, MISSING),
        position_sections=sections(content.estimates, POSITION),
        preference_sections=sections(content.estimates, PREFERENCE),
        published=published_grid(content.published),
        missing=[plain_grid(table) for table in content.missing],
        listings=[(one, plain_grid(Table.from_frame(one.caption, one.frame))) for one in content.listings],
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
    )


def _examples(content: ReportContent) -> tuple[list[ShownExample], str]:
    """Return the first examples, with texts cut to an equal share, and a note on those left out."""
    shown = content.examples[:MOST_EXAMPLES]
    count = sum(len(one.texts) for one in shown)
    most = min(MOST_TEXT // max(count, 1), MOST_CHARACTERS - 100)
    notes = [content.left_out] if content.left_out else []
    if len(shown) < len(content.examples):
        notes.append(f"Only the first {len(shown):,} of {len(content.examples):,} examples are shown.")
    cut = [replace(one, texts=tuple((label, shorten(text, most)) for label, text in one.texts)) for one in shown]
    return cut, " ".join(notes)


@cache
def _environment() -> jinja2.Environment:
    environment = environment_of(_resource)
    environment.filters.update(group_words=group_words, settings_words=settings_words, filters=filters)
    return environment


def environment_of(load: Callable[[str], str], most: int = MOST_CHARACTERS) -> jinja2.Environment:
    """Return an environment of pages: every value is escaped, cleaned, and not longer than `most` characters.

    Args:
        load: returns the text of a template by its name.
        most: as in `clean`.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(load),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=partial(clean, most=most),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, web_link=web_link, quoted=shlex.quote)
    return environment


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Return the policy of a page whose only style and script are these."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
