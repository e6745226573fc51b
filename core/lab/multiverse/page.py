"""The files of a multiverse: a page with the specification curve, and the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from ...charts.forest import Panel, Point, forest
from ...contracts.estimates import Chart, Listing
from ...engine.manifest import new_name
from ...report import ReportContent, StudyInfo
from ...report.export import write_bytes
from ...report.folder import write_folder
from ...report.place import MULTIVERSE, Said, folder_within
from ...scoring.score import Scores
from .multiverse import Found
from .words import agreement, conclusion, priced, unable

SHOWN = 60
"""Universes in the figure; of more, every so many."""


def frame(found: Found) -> pl.DataFrame:
    """Return a row per universe, least value first: the choices, value, interval, p, verdict and run."""
    rows = [
        {
            **{name: str(value) for name, value in one.universe.chosen.items()},
            "value": one.estimate.value,
            "low": one.estimate.low,
            "high": one.estimate.high,
            "neutral": one.estimate.neutral,
            "unit": one.estimate.unit,
            "p_adjusted": one.estimate.p_adjusted,
            "verdict": one.verdict,
            "own": place == 0,
            "run": one.run,
        }
        for place, one in enumerate(found.results)
    ]
    return pl.DataFrame(rows, infer_schema_length=None).sort("value", nulls_last=True, maintain_order=True)


def moves(found: Found) -> pl.DataFrame:
    """Return a row per choice, the one that moves the result most first."""
    rows: list[dict[str, Any]] = [msgspec.structs.asdict(one) for one in found.moved]
    return pl.DataFrame(rows, infer_schema_length=None)


def chart(found: Found) -> Chart:
    """Draw the specification curve: every universe by its value, with interval."""
    ranked = sorted(found.results, key=lambda one: (one.estimate.value is None, one.estimate.value))
    shown = ranked[:: max(1, -(-len(ranked) // SHOWN))]
    points = [
        Point(
            ", ".join(map(str, one.universe.chosen.values())) + (" (the study's own)" if one is found.own else ""),
            one.estimate.value,
            one.estimate.low,
            one.estimate.high,
            one.estimate.shown,
        )
        for one in shown
    ]
    own = found.own.estimate
    axis = " ".join(filter(None, [own.label or own.metric, f"({own.unit})" if own.unit else ""]))
    caption = (
        f"{len(shown)} of {len(ranked)} universes by their value, with intervals; full marks are significant. Each row "
        f"names its choices of {', '.join(found.own.universe.chosen)}."
    )
    drawn = forest([Panel("universes", axis, points, own.neutral)])
    return Chart("specification-curve", "The result by choice", caption, drawn)


def write_multiverse(found: Found, scores: Scores, folder: Path) -> Path:
    """Write all files to a new folder, and return the path of the page; `scores` is the run of the first result.

    Raises:
        UsageError: the folder cannot be written.
    """
    place = folder / f"multiverse-{new_name(found.study.name, found.own.universe.measure)}"
    tables = {"universes": frame(found), "choices": moves(found)}
    manifest = scores.manifest
    estimates = [
        one.estimate.replace(group=one.estimate.group | {k: str(v) for k, v in one.universe.chosen.items()})
        for one in found.results
    ]
    content = ReportContent(
        title=f"Every defensible choice of {found.study.name}",
        study=StudyInfo(name=found.study.name, summary=found.study.summary, citation=found.study.source),
        models=manifest.identities,
        names=dict(manifest.study.roles),
        estimates=estimates,
        headline=estimates[:1],
        conclusions={found.own.estimate.label or found.own.universe.measure: conclusion(found)},
        warnings=[
            f"Not asked: {one.universes} universes with {', '.join(f'{k} = {v}' for k, v in one.chosen.items())} "
            f"({priced([one])})."
            for one in found.missing
        ]
        + ([f"{unable(found)}."] if found.unable else []),
        charts=[chart(found)],
        listings=[
            Listing("universes", "Every universe", "", tables["universes"]),
            Listing("choices", "What each choice does, all else as it is", "", tables["choices"]),
        ],
        methods=[
            "Every combination of the declared choices is a universe. Its answers are those of a finished run of the "
            "store that asked the same; options of metrics and of reading are set anew. Universes share answers, so "
            "they are no independent evidence, and no test is made over them (Steegen and others 2016; Simonsohn and "
            "others 2020). A choice is judged by pairs of universes that differ in it alone.",
        ],
        limits=manifest.study.limits,
        provenance={"runs": {one.run: {"run": one.run, "study": found.study.name} for one in found.results}},
    )
    page = write_folder(place, content, tables, {})
    if manifest.head:
        said = Said(manifest.head, f"Every defensible choice: {agreement(found)} ({place.name}).")
        write_bytes(msgspec.json.encode(said), folder_within(folder, scores.run.name) / MULTIVERSE)
    return page
