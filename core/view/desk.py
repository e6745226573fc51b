"""Pages where samples are drawn, labelled and read. Those that label show no run, model, verdict or other person."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from ..annotation.design import Design
from ..annotation.matrix import matrix_of, share_by_matrix
from ..annotation.results import agreement_of, sample_results
from ..annotation.samples import Sample, ensure_person, sample_of, samples_in
from ..annotation.shares import LEVEL
from ..annotation.sheets import completed, labels_frame
from ..contracts.errors import DataError, UnknownNameError, UsageError
from ..report.export import encode
from ..report.pictures import kind_of
from ..store import list_runs
from .answering import Pages, html
from .drawing import drawn, form
from .room import Room
from .urls import View, number


def label_pages(samples: Path) -> Pages:
    """Return the pages for those who label."""

    def image(_: Room | None, request: Request) -> Response:
        data = sample_of(samples, request.path_params["sample"]).image(request.path_params["sha256"])
        kind = kind_of(data)
        return Response(data, media_type=kind) if kind else PlainTextResponse("not an image\n", status_code=415)

    def label(_: Room | None, request: Request) -> Response:
        sample = sample_of(samples, request.path_params["sample"])
        if request.method == "POST":
            given: dict[str, str] = request.state.form
            sample.add(given.get("by", ""), given.get("item", ""), given.get("label", ""), given.get("note", ""))
            return RedirectResponse(f"?{urlencode({'by': given['by']})}", status_code=303)
        return _labelled(sample, request.query_params.get("by", ""), request.query_params.get("item"))

    return {
        "/label/{sample}": (("GET", "POST"), label),
        "/label/{sample}/image/{sha256}": (("GET",), image),
    }


def _labelled(sample: Sample, by: str, place: str | None) -> Response:
    """Return the page of an item: that of a place in the person's order, or the first without a label."""
    sheet = sample.sheet
    if not by.strip():
        return html("person.html", title="Label", sheet=sheet)
    ensure_person(by)
    own, order = sample.labels().get(by, {}), sample.order(by)
    items = [sheet.items[one] for one in order]
    first = next((at for at, item in enumerate(items) if item.item not in own), None)
    # Nobody chooses among the items: whoever did would make the labelled ones no random sample.
    at = first if place is None else min(number(place), len(items) - 1 if first is None else first)
    item = None if at is None else items[at]
    return html(
        "label.html",
        title="Label",
        name=sample.folder.name,
        sheet=sheet,
        by=by,
        item=item,
        at=at,
        done=len(own),
        given=own[item.item] if item is not None and item.item in own else None,
    )


def sample_pages(samples: Path, *, alone: bool = False) -> Pages:
    """Return the pages for those who draw samples and read the results; `alone`: there is no store to draw from."""

    def listed(_: Room, request: Request) -> Response:
        rows = list(map(_listed, samples_in(samples)))
        return html("samples.html", title="Samples to label", samples=rows, folder=str(samples))

    def new(room: Room, request: Request) -> Response:
        return drawn(room, samples, request) if request.method == "POST" else form(room, request)

    def results(room: Room | None, request: Request) -> Response:
        sample = sample_of(samples, request.path_params["sample"])
        title = f"Sample {sample.folder.name}"
        if not sample.is_drawn:
            labels, sheet = sample.labels(), sample.sheet
            people = {by: len(own) for by, own in labels.items()}
            alpha = agreement_of(sheet.labels, [item.item for item in sheet.items], labels)
            return html("sheet.html", title=title, sample=sample, sheet=sheet, people=people, agreement=alpha)
        asked = request.query_params
        other, problem = None, ""
        if all(asked.get(name) for name in ("right", "positives", "clear", "negatives", "label")):
            try:
                other = _elsewhere(sample.design, asked["label"], *_counts(asked))
            except UsageError as error:
                problem = str(error)
        return html(
            "sample.html",
            title=title,
            sample=sample,
            design=sample.design,
            there=room is not None and any(run.name == sample.design.run for run in list_runs(room.store)),
            sheet=sample.sheet,
            judged=sample_results(sample),
            query=_query(sample.design),
            asked=dict(asked),
            other=other,
            problem=problem,
        )

    def exported(_: Room, request: Request) -> Response:
        sample = sample_of(samples, request.path_params["sample"])
        name = f'attachment; filename="labels-{sample.folder.name}.csv"'
        return Response(
            encode(labels_frame(sample), "csv"), media_type="text/csv", headers={"Content-Disposition": name}
        )

    def sheet(_: Room, request: Request) -> Response:
        sample = sample_of(samples, request.path_params["sample"])
        name = f'attachment; filename="sheet-{sample.folder.name}.csv"'
        return Response(completed(sample), media_type="text/csv", headers={"Content-Disposition": name})

    drawing: Pages = {"/": (("GET",), listed)} if alone else {"/run/{run}/sample": (("GET", "POST"), new)}
    return {
        **drawing,
        "/samples": (("GET",), listed),
        "/sample/{sample}": (("GET",), results),
        "/sample/{sample}/labels.csv": (("GET",), exported),
        "/sample/{sample}/sheet.csv": (("GET",), sheet),
        **label_pages(samples),
    }


def _listed(sample: Sample) -> dict[str, Any]:
    """Return a row of the list; one sample that cannot be read hides no other."""
    row: dict[str, Any] = {"name": sample.folder.name, "problem": "", "run": "", "people": {}}
    try:
        row |= {"question": sample.sheet.question, "size": len(sample.sheet.items)}
        row["people"] = {by: len(own) for by, own in sample.labels().items()}
        row["run"] = "" if sample.sheet.column else sample.design.run
    except (DataError, OSError) as error:
        row["problem"] = str(error)
    return row


def _counts(asked: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    right, positives, clear, negatives = (number(asked[n]) for n in ("right", "positives", "clear", "negatives"))
    return (min(right, positives), positives), (min(clear, negatives), negatives)


def _elsewhere(design: Design, label: str, sensitivity: tuple[int, int], specificity: tuple[int, int]) -> Any:
    """Return the share by the verdict, corrected by an error matrix from elsewhere."""
    if label not in {stratum.verdict for stratum in design.strata}:
        raise UnknownNameError("verdict", label, [stratum.verdict for stratum in design.strata])
    hits = sum(stratum.size for stratum in design.strata if stratum.verdict == label)
    return share_by_matrix(hits, design.population, matrix_of(label, sensitivity, specificity), LEVEL)


def _query(design: Design) -> str:
    """Return the query of the answers that a sample was drawn from."""
    return View(filters=design.filters, words=design.words, where=design.where).query
