"""Draw the charts as SVG for the page, and as files for papers."""

from __future__ import annotations

import io
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from markupsafe import Markup

from ..charts.numbers import numbers_of
from ..contracts.estimates import Chart
from .content import Table
from .grid import Grid, plain_grid

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
HEAVY = 64_000
"""Bytes of an SVG above which a page shows a PNG; the files beside it are as they were."""
COLOURS, DPI = 16, 120
_DATES = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


class Drawing(msgspec.Struct, frozen=True):
    """A chart on the page."""

    title: str
    caption: str
    file: str
    """Name of the figure's files, without the ending."""
    width: int
    height: int
    """Size in CSS pixels."""
    svg: bytes
    png: bytes = b""
    """A picture of fewer bytes, where the SVG is heavy."""
    problem: str = ""
    """Reason for a missing picture."""
    numbers: tuple[Grid, ...] = ()
    """What is drawn, as tables."""

    @property
    def source(self) -> Markup:
        """Return the picture as a data URL; use it only in <img>, where scripts in an SVG cannot run."""
        media, data = ("png", self.png) if self.png else ("svg+xml", self.svg)
        return Markup(f"data:image/{media};base64,{b64encode(data).decode()}")

    @property
    def alt(self) -> str:
        """Return the alternative text of the picture; what it says further stands beside it."""
        return f"{self.title}. Its numbers follow as a table." if self.numbers else self.title


def draw(charts: Sequence[Chart]) -> list[Drawing]:
    """Draw every chart as SVG. For a chart that cannot be drawn, the page shows the reason instead."""
    return [_drawing(number, chart) for number, chart in enumerate(charts, start=1)]


def export(chart: Chart, kind: str) -> bytes:
    """Return the chart as a file of this kind (`svg`, `pdf`, or another that matplotlib knows)."""
    import matplotlib

    buffer = io.BytesIO()
    # Glyphs as paths look the same on every machine; with a fixed salt and no date, equal charts give equal bytes.
    # Type 42: conferences refuse PDFs with Type 3 fonts.
    with (
        matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "prejudge", "pdf.fonttype": 42}),
        _laid_out(chart, again=kind == "svg"),
    ):
        chart.figure.savefig(buffer, format=kind, metadata=_DATES.get(kind))
    # XML allows no control characters, and matplotlib writes the texts of a figure into comments.
    return _CONTROL.sub(b"?", buffer.getvalue()) if kind == "svg" else buffer.getvalue()


@contextmanager
def _laid_out(chart: Chart, *, again: bool) -> Iterator[None]:
    """Draw a chart with the layout that the page's SVG, the first to be drawn, has given it; or lay it out `again`.

    The layout takes a third of the time, and all files of a figure show the same one.
    """
    engine = chart.figure.get_layout_engine()
    if again or engine is None:
        yield
        return
    chart.figure.set_layout_engine("none")
    try:
        yield
    finally:
        chart.figure.set_layout_engine(engine)


def _light(chart: Chart, svg: bytes) -> bytes:
    """Return a PNG of few colours for the page, where an SVG of hundreds of labels would be several times its size."""
    if len(svg) <= HEAVY:
        return b""
    from PIL import Image

    drawn, found = io.BytesIO(), io.BytesIO()
    with _laid_out(chart, again=False):
        chart.figure.savefig(drawn, format="png", dpi=DPI)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(COLOURS).save(found, "PNG", optimize=True)
    return found.getvalue()


def file_name(number: int, name: str) -> str:
    """Return a file name that is valid on every system and unique by its number."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
    return f"{number:02d}-{words}".rstrip("-")


def _drawing(number: int, chart: Chart) -> Drawing:
    width, height = (round(96 * inches) for inches in chart.figure.get_size_inches())
    svg, png, problem = b"", b"", ""
    try:
        svg = export(chart, "svg")
        png = _light(chart, svg)
    except (TypeError, ValueError) as error:  # matplotlib raises it for invalid text such as `$\frac{$`
        problem = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return Drawing(
        title=chart.title,
        caption=chart.caption,
        file=file_name(number, chart.name),
        width=width,
        height=height,
        svg=svg,
        png=png,
        problem=problem,
        numbers=tuple(
            plain_grid(Table(f"Figure {number}{f', {part.title}' if part.title else ''}", part.columns, part.rows))
            for part in numbers_of(chart.figure)
        ),
    )
