"""Pages where samples are drawn, labelled and read. Those that label show no run, model, verdict or other person."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from ..contracts.errors import DataError, UnknownNameError, UsageError
from ..report.export import encode
from ..report.pictures import kind_of
from ..statistics.labelled import rogan_gladen
from ..store import get_run
from .answering import Pages, html, ready
from .exchanges import BESIDES, shown
from .judged import LEVEL, judge
from .labels import Sample, ensure_person, sample_of, samples_in, write_sample
from .room import Room
from .sampling import MOST_VERDICTS, Design, Drawn, Item, Sheet, draw, new_sample
from .urls import number, read_view

USUAL = 200
"""Answers that are drawn unless somebody says otherwise."""
MOST_CELLS = 12
"""Levels of a factor that is offered as a cell."""


def label_pages(samples: Path) -> Pages:
    """Return the pages for those who label."""

    def image(_: Room | None, request: Request) -> Response:
        data = sample_of(samples, request.path_params["sample"]).image(request.path_params["sha256"])
        kind = kind_of(data)
        return Response(data, media_type=kind) if kind else PlainTextResponse("not an image\n", status_code=415)

    def label(_: Room | None, request: Request) -> Response:
        sample = sample_of(samples, request.path_params["sample"])
        if request.method == "POST":
            form: dict[str, str] = request.state.form
            sample.add(form.get("by", ""), form.get("item", ""), form.get("label", ""), form.get("note", ""))
            return RedirectResponse(f"?{urlencode({'by': form['by']})}", status_code=303)
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


def sample_pages(samples: Path) -> Pages:
    """Return the pages for those who draw samples and read the results."""

    def listed(_: Room, request: Request) -> Response:
        rows = list(map(_listed, samples_in(samples)))
        return html("samples.html", title="Samples to label", samples=rows, folder=str(samples))

    def new(room: Room, request: Request) -> Response:
        return _drawn(room, samples, request) if request.method == "POST" else _form(room, request)

    def results(_: Room, request: Request) -> Response:
        sample = sample_of(samples, request.path_params["sample"])
        asked = request.query_params
        other, problem = None, ""
        if all(asked.get(name) for name in ("right", "positives", "clear", "negatives", "label")):
            try:
                other = _elsewhere(sample.design, asked["label"], *_counts(asked))
            except UsageError as error:
                problem = str(error)
        return html(
            "sample.html",
            title=f"Sample {sample.folder.name}",
            sample=sample,
            design=sample.design,
            sheet=sample.sheet,
            judged=judge(sample),
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

    return {
        "/samples": (("GET",), listed),
        "/run/{run}/sample": (("GET", "POST"), new),
        "/sample/{sample}": (("GET",), results),
        "/sample/{sample}/labels.csv": (("GET",), exported),
        **label_pages(samples),
    }


def _listed(sample: Sample) -> dict[str, Any]:
    """Return a row of the list; one sample that cannot be read hides no other."""
    row: dict[str, Any] = {"name": sample.folder.name, "problem": "", "run": "", "people": {}}
    try:
        row |= {"question": sample.sheet.question, "size": len(sample.sheet.items)}
        row["people"] = {by: len(own) for by, own in sample.labels().items()}
        row["run"] = sample.design.run
    except (DataError, OSError) as error:
        row["problem"] = str(error)
    return row


def _form(room: Room, request: Request) -> Response:
    run, view = get_run(room.store, request.path_params["run"]), read_view(request.query_params.multi_items())
    index = ready(room, run)
    found = index.find(view.filters, view.words, view.where)
    offered = [c for c in index.columns.values() if c.codes is not None and c.kind == "levels"]
    verdicts = [c for c in offered if c.role in ("outcome", "status") and 1 < len(c.levels) <= MOST_VERDICTS]
    verdicts = verdicts or [index.columns["status"]]
    chosen = request.query_params.get("verdict", "")
    verdict = next((c for c in verdicts if c.name == chosen), sorted(verdicts, key=lambda c: c.role != "outcome")[0])
    return html(
        "draw.html",
        title="Draw a sample",
        run=run,
        view=view,
        count=len(found.rows),
        verdicts=verdicts,
        verdict=verdict,
        cells=[c for c in offered if c.role == "factor" and 1 < len(c.levels) <= MOST_CELLS],
        usual=min(USUAL, len(found.rows)),
    )


def _drawn(room: Room, samples: Path, request: Request) -> Response:
    """Draw a sample as the form says, and lead to it."""
    run, view = get_run(room.store, request.path_params["run"]), read_view(request.query_params.multi_items())
    form: dict[str, str] = request.state.form
    index = room.shelf.wait(run)
    labels = tuple(dict.fromkeys(filter(None, (one.strip() for one in form.get("labels", "").splitlines()))))
    if len(labels) < 2:
        raise UsageError("A question needs two labels or more, one a line.", code="annotation.labels")
    cells = [name.removeprefix("cell.") for name in form if name.startswith("cell.")]
    seed = number(form.get("seed", "")) or secrets.randbelow(2**31)
    rows = index.find(view.filters, view.words, view.where).rows
    strata, drawn = draw(index, rows, form.get("verdict", "status"), cells, number(form.get("n", "")), seed)
    items = shown(room.store, run, index, [row for row, _, _ in drawn])
    names = [secrets.token_hex(5) for _ in drawn]
    sample = new_sample()
    design = Design(
        sample=sample,
        run=run.name,
        head=(run.head or b"").hex(),
        query=view.query,
        verdict=form.get("verdict", "status"),
        cells=tuple(cells),
        seed=seed,
        drawn=time.time(),
        population=len(rows),
        strata=tuple(strata),
        items=tuple(
            Drawn(name, row, one.trial, one.key, stratum, probability)
            for name, one, (row, stratum, probability) in zip(names, items, drawn, strict=True)
        ),
    )
    sheet = Sheet(
        sample=sample,
        question=form.get("question", "").strip()[:2000] or "Which label fits the answer?",
        labels=labels,
        seed=seed,
        items=tuple(
            Item(
                name,
                one.asked,
                "\n\n".join(text for label, text in one.said if label not in ("reasoning", *BESIDES)),
                tuple(dict.fromkeys(sha256 for _, sha256 in one.images)),
            )
            for name, one in zip(names, items, strict=True)
        ),
    )
    made = write_sample(samples, design, sheet, room.store.blob)
    return RedirectResponse(f"/sample/{made.folder.name}", status_code=303)


def _counts(asked: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    right, positives, clear, negatives = (number(asked[n]) for n in ("right", "positives", "clear", "negatives"))
    return (min(right, positives), positives), (min(clear, negatives), negatives)


def _elsewhere(design: Design, label: str, sensitivity: tuple[int, int], specificity: tuple[int, int]) -> Any:
    """Return the share by the verdict, corrected by an error matrix from elsewhere."""
    if label not in {stratum.verdict for stratum in design.strata}:
        raise UnknownNameError("verdict", label, [stratum.verdict for stratum in design.strata])
    share = sum(s.size for s in design.strata if s.verdict == label) / design.population
    return rogan_gladen(share, design.population, sensitivity, specificity, LEVEL)


def labels_frame(sample: Sample) -> pl.DataFrame:
    """Return one row per label that counts, with how its item was drawn."""
    design = sample.design
    by_item = {one.item: one for one in design.items}
    rows = []
    for person, own in sample.labels().items():
        for one in own.values():
            drawn = by_item[one.item]
            stratum = design.strata[drawn.stratum]
            rows.append(
                {"item": one.item, "trial": drawn.trial, "key": drawn.key, "row": drawn.row, **stratum.cell}
                | {"verdict": stratum.verdict, "stratum": drawn.stratum, "stratum_size": stratum.size}
                | {"probability": drawn.probability, "person": person, "label": one.label, "note": one.note}
                | {"at": one.at}
            )
    return pl.DataFrame(rows or {"item": []}, infer_schema_length=None)
