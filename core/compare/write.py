"""Write the files of a comparison to `runs/compare-.../`: a report, tables, forest plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import polars as pl

from ..catalogue.study import SUBJECT
from ..contracts.estimates import Estimate
from ..engine.manifest import Manifest, new_name
from ..report import ReportContent, StudyInfo
from ..report.export import write_bytes
from ..report.folder import write_folder
from ..scoring.estimates_frame import estimates_frame
from .answered import answer_of_comparison
from .markdown import markdown
from .records import Comparison

T = TypeVar("T")
FEW, LARGEST = 24, 5
"""Differences that the short table shows whole; and how many of a measure by group it shows of more."""


def differences_frame(comparison: Comparison) -> pl.DataFrame:
    """Return the differences as a tidy frame, each beside the values of its two runs."""
    frame = estimates_frame(comparison.estimates)
    values = [
        pl.Series(name, [getattr(d, end) for d in comparison.differences], dtype=pl.Float64)
        for name, end in (("against_value", "first"), ("run_value", "second"))
    ]
    place = frame.columns.index("value") if frame.width else 0
    return frame.select(*frame.columns[:place], *values, *frame.columns[place:])


def write_comparison(comparison: Comparison, folder: Path, more_formats: Sequence[str] = ()) -> Path:
    """Write all files of a comparison to a new folder, figures as SVG and in more formats; return the report's path.

    Raises:
        UsageError: the folder cannot be written.
    """
    place = folder / f"compare-{new_name(_study(comparison), f'{len(comparison.runs)}-runs')}"
    frames = {"differences": differences_frame(comparison)}
    frames |= {listing.name: listing.frame for listing in comparison.listings}
    manifests = {label: scores.manifest for label, scores in comparison.runs.items()}
    write_bytes(markdown(comparison).encode(), place / "comparison.md")
    return write_folder(place, _content(comparison), frames, {"manifests": manifests}, more_formats)


def largest(comparison: Comparison) -> tuple[list[Estimate], str]:
    """Return the differences to show first, and what to say of the others.

    With several pairs of runs, a measure has its difference over all in every pair, and by group the largest few.
    """
    every = [difference.estimate for difference in comparison.headline]
    pairs = {(e.group.get("run"), e.group.get("against")) for e in every}
    if comparison.ranked or len(pairs) < 2 or len(every) <= FEW:
        return every, ""
    by_group: dict[str, list[Estimate]] = {}
    for one in every:
        if one.group.keys() - {"run", "against"}:
            by_group.setdefault(one.metric, []).append(one)
    kept = {
        id(one)
        for rows in by_group.values()
        for one in sorted(rows, key=lambda e: -abs(e.value) if e.value is not None else 0.0)[:LARGEST]
    }
    shown = [one for one in every if id(one) in kept or not one.group.keys() - {"run", "against"}]
    if len(shown) == len(every):
        return every, ""
    return shown, (
        f"Headline estimates are the differences over all and, of each measure, the {LARGEST} largest by group: "
        f"{len(shown)} of {len(every)}. They were chosen by their size; all stand in the sections below."
    )


def _study(comparison: Comparison) -> str:
    names = dict.fromkeys(scores.manifest.study.name for scores in comparison.runs.values())
    return "-".join(names)


def _by_role(comparison: Comparison, of: Callable[[Manifest], Mapping[str, T]]) -> dict[str, T]:
    """Return the model records of each role from the manifests, by the run's label (the subject by the label alone)."""
    return {
        label if role == SUBJECT else f"{label}, {role}": found
        for label, scores in comparison.runs.items()
        for role, found in of(scores.manifest).items()
    }


def _content(comparison: Comparison) -> ReportContent:
    studies = {scores.manifest.study.name: scores.manifest.study for scores in comparison.runs.values()}
    first, several = next(iter(studies.values())), len(studies) > 1
    shown, left_out = largest(comparison)
    sources = [f"{name}: {study.source or 'not stated'}" for name, study in studies.items()]
    return ReportContent(
        title=comparison.title,
        study=StudyInfo(
            name=", ".join(studies),
            summary="" if several else first.summary,
            citation="; ".join(sources) if several else first.source,
        ),
        models=_by_role(comparison, lambda manifest: manifest.identities),
        names=_by_role(comparison, lambda manifest: manifest.study.roles),
        settings=_by_role(comparison, lambda manifest: manifest.settings),
        answer=answer_of_comparison(comparison),
        estimates=comparison.estimates,
        headline=shown or None,
        conclusions={"comparison": comparison.conclusion},
        warnings=(*comparison.notes, *([left_out] if left_out else [])),
        charts=comparison.charts,
        leading=min(len(comparison.charts), 1),
        listings=comparison.listings,
        methods=[text for text in comparison.methods if text],
        limits=tuple(
            dict.fromkeys(limit for scores in comparison.runs.values() for limit in scores.manifest.study.limits)
        ),
        provenance={
            "runs": {label: scores.run.name for label, scores in comparison.runs.items()},
            "asked by": {label: f"prejudge {scores.manifest.prejudge}" for label, scores in comparison.runs.items()},
            "options of the probe": {
                scores.run.name: scores.manifest.study.options for scores in comparison.runs.values()
            },
            "data files (sha256)": {scores.run.name: scores.manifest.data for scores in comparison.runs.values()},
        },
    )
