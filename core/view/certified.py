"""The pages of certificates: what each study finds in models whose bias is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from ..catalogue.certificate_records import Certificate
from ..catalogue.filed import find_certificates
from ..contracts.errors import UnknownNameError
from ..lab.calibration.page import draw, page
from ..lab.calibration.summary import verdict
from ..report.figures import export
from .answering import Pages, html
from .room import Room

_CELLS = re.compile(r"(?<!\\)\|")
_MARKS = (
    (re.compile(r"`([^`]+)`"), "code"),
    (re.compile(r"\*\*([^*]+)\*\*"), "strong"),
    (re.compile(r"\*([^*]+)\*"), "em"),
)


def certificates_of(room: Room) -> dict[str, Certificate]:
    """Return the certificate of every study that has one; the user's own stands for that of the project."""
    kept: dict[str, Certificate] = room.kept.get("certificates", {})
    if not kept:
        for name, entry in room.catalogue.registry.studies.items():
            if (one := next(find_certificates(room.catalogue, name, entry.probe), None)) is not None:
                kept[name] = one
        room.kept["certificates"] = kept
    return kept


def listed(room: Room, request: Request) -> Response:
    """Show every study with its verdict."""
    rows = [(name, one, inline(verdict(one))) for name, one in certificates_of(room).items()]
    return html("certificates.html", title="Certificates", rows=rows)


def certificate(room: Room, request: Request) -> Response:
    """Show a certificate as `prejudge lab calibrate` writes it."""
    one = _one(room, request)
    return html("certificate.html", title=f"Certificate of {one.study}", study=one.study, body=blocks(page(one)))


def figure(room: Room, request: Request) -> Response:
    """Return the figure of a certificate, drawn once; as an image it runs nothing."""
    one = _one(room, request)
    drawn: dict[str, bytes] = room.kept.setdefault("certificate figures", {})
    if one.study not in drawn:
        drawn[one.study] = export(draw(one), "svg")
    return Response(drawn[one.study], media_type="image/svg+xml")


def _one(room: Room, request: Request) -> Certificate:
    known, name = certificates_of(room), request.path_params["study"]
    if name not in known:
        raise UnknownNameError("certificate", name, known)
    return known[name]


def inline(text: str) -> Markup:
    """Return a text of Markdown with code and emphasis; all else is escaped."""
    found = str(escape(text))
    for mark, tag in _MARKS:
        found = mark.sub(rf"<{tag}>\1</{tag}>", found)
    return Markup(found)


def blocks(text: str) -> Iterator[tuple[str, object]]:
    """Yield headings, tables (rows of cells, the first is the head), lists and paragraphs of a page in Markdown."""
    lines = [line for line in text.splitlines() if line and not line.startswith("# ")]
    for kind, some in groupby(lines, key=_kind):
        own = list(some)
        if kind == "table":
            cells = [[inline(cell.strip()) for cell in _CELLS.split(line.strip().strip("|"))] for line in own]
            yield kind, [cells[0], *cells[2:]]
        else:
            yield from ((kind, inline(line.lstrip("#- "))) for line in own)


def _kind(line: str) -> str:
    return {"#": "heading", "|": "table", "-": "item"}.get(line[0], "text")


PAGES: Pages = {
    "/certificates": (("GET",), listed),
    "/certificate/{study}": (("GET",), certificate),
    "/certificate/{study}/figure.svg": (("GET",), figure),
}
