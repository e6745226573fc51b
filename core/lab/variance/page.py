"""The files of an analysis of variance: a page, figures, and the tables as files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl

from ...charts.components import Part, draw_components, draw_designs
from ...contracts.estimates import Caveat, Chart, Estimate, Listing
from ...engine.manifest import new_name
from ...report import ReportContent, StudyInfo
from ...report.folder import write_folder
from .variance import Variance, component_rows, design_rows
from .words import NEGATIVE, coefficients, conclusion, methods, title_of


def frames(found: Variance) -> dict[str, pl.DataFrame]:
    """Return the components and the designs as frames."""
    rows = {"components": component_rows(found), "designs": design_rows(found)}
    return {name: pl.DataFrame(own, infer_schema_length=None) for name, own in rows.items()}


def write_variance(found: Variance, folder: Path) -> Path:
    """Write all files to a new folder, and return the path of the page.

    Raises:
        UsageError: the folder cannot be written.
    """
    study = next(iter(found.runs.values())).manifest.study.name
    place = folder / f"variance-{new_name(study, found.outcome.measure)}"
    notes = [msgspec.to_builtins(note) for note in found.notes]
    said = {"conclusion": conclusion(found), "method": found.found.method, "notes": notes}
    return write_folder(place, _content(found), frames(found), {"variance": said})


def estimates(found: Variance) -> list[Estimate]:
    """Return the components, the standard error and the reliability as estimates."""
    level, (of_one, of_sum) = found.found.level, found.found.limits.named
    made = [
        Estimate.from_flat(
            metric="variance_component",
            group={"component": one.term.name},
            value=one.variance,
            low=one.low,
            high=one.high,
            level=level,
            interval=of_one,
            n=found.outcome.rows.height,
            clusters=one.term.levels,
            label="Variance component",
            meaning="Variance of the effects of a facet's levels, or of their combinations.",
            note=NEGATIVE if one.variance < 0 else "",
        )
        for one in found.found.components
    ]
    error = found.headline.error
    told = [("standard_error", "Standard error", error, "Of the headline, over all facets that are generalised over.")]
    told += [(name.replace(" ", "_"), name.capitalize(), value, said) for name, value, said in coefficients(found)]
    made += [
        Estimate.from_flat(
            metric=name,
            group={},
            value=own.value,
            low=own.low,
            high=own.high,
            level=level,
            interval=of_sum if own.low is not None else "",
            n=found.outcome.rows.height,
            caveats=(Caveat.UNDEFINED,) if own.value is None else (),
            unit=found.outcome.words.unit if name == "standard_error" else "",
            label=label,
            meaning=f"{said[:1].upper()}{said[1:]}".rstrip(".") + ".",
        )
        for name, label, own, said in told
    ]
    return made


def charts(found: Variance) -> list[Chart]:
    """Draw where the variance comes from, and what more of each facet would do."""
    total = found.found.total or 1.0
    parts = [
        Part(
            row["component"],
            row["share of variance (%)"] or 0.0,
            100 * max(row["low"], 0.0) / total,
            100 * max(row["high"], 0.0) / total,
            row["share of squared error (%)"] or 0.0,
            row["in the error"],
        )
        for row in component_rows(found)
    ]
    now, errors = found.headline.planned({}).error, dict[str, dict[int, float]]()
    for name, times, design in found.designs:
        if name:
            errors.setdefault(name, {})[times] = design.error
    return [
        Chart(
            "components",
            "Where the variance comes from",
            "Left: the parts of the variance of a single answer, with intervals. Right: the parts of the headline's "
            "squared standard error. A facet with few levels can be small on the left and large on the right.",
            draw_components(parts),
        ),
        Chart(
            "designs",
            "What more levels would do",
            "Standard error of the headline with 2, 5 and 10 times the levels of one facet, all else as in the run. "
            "The lowest line is the facet to ask more of; more levels of a flat one do not help.",
            draw_designs(now, errors, found.outcome.words.unit, found.wanted or None),
        ),
    ]


def _content(found: Variance) -> ReportContent:
    manifests = {label: scores.manifest for label, scores in found.runs.items()}
    study = next(iter(manifests.values())).study
    every, tables = estimates(found), frames(found)
    roles = [(label, role) for label, manifest in manifests.items() for role in manifest.identities]
    named = {(label, role): label if role == "subject" else f"{label}, {role}" for label, role in roles}
    return ReportContent(
        title=title_of(found),
        study=StudyInfo(name=study.name, summary=study.summary, citation=study.source),
        models={named[label, role]: manifests[label].identities[role] for label, role in roles},
        names={named[label, role]: manifests[label].study.roles.get(role, "") for label, role in roles},
        estimates=every,
        headline=every,
        conclusions={found.outcome.words.label: conclusion(found)},
        warnings=[note.text for note in found.notes],
        charts=charts(found),
        listings=[
            Listing("components", "Variance components", "", tables["components"]),
            Listing("designs", "Designs, their errors and what they cost", "", tables["designs"]),
        ],
        methods=methods(found),
        limits=study.limits,
        provenance={
            "runs": {
                label: {"run": manifest.run, "study": manifest.study.name} for label, manifest in manifests.items()
            },
            "metric": found.outcome.metric,
            "facets": list(found.outcome.facets),
            "generalised over": sorted(found.headline.random),
        },
    )
