"""Write the output of a run to `runs/<name>/`: the report, the tables, the manifest."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ..answer import answer_of
from ..answer.lost import lost_examples
from ..answer.twins import twin_pair
from ..catalogue.published import Published as PublishedValue
from ..catalogue.published import references, unresolved, whose
from ..catalogue.study import SUBJECT
from ..contracts import Estimate, Stage
from ..contracts.errors import UnknownNameError, UsageError
from ..engine.manifest import IMPORTED, MANIFEST
from ..scoring.estimates_frame import estimates_frame
from ..scoring.score import Scores
from ..scoring.unproved import unproved_words
from ..scoring.warnings import warnings_of
from ..store import Store
from . import Published, ReportContent, StudyInfo, Table, write
from .examples import show_examples, show_pictures
from .export import encode
from .integrity import integrity_words
from .observed import OBSERVATIONS, write_observations
from .place import folder_within, with_said
from .provenance import chosen_words, described_words, design_words, provenance, when
from .twins import show_twins

ANSWERS = "answers.json"
"""File of the first screen, for programs."""
PARTS = ("examples", "images")
"""Parts that a report can leave out."""


class ReportParts(NamedTuple):
    """What a report has."""

    leave_out: Collection[str] = ()
    """Names of parts of `PARTS`."""
    beside: Collection[str] = ()
    """Published models whose values stand beside the run's; `all` is every model."""
    figures: Sequence[str] = ()
    """Formats of the figures beside SVG."""


EVERYTHING = ReportParts()


def write_output(scores: Scores, store: Store | None, folder: Path, parts: ReportParts = EVERYTHING) -> Path:
    """Write all output of a run, and return the path of the report.

    Raises:
        UsageError: the folder cannot be written, or has links that lead out of it.
        UnknownNameError: a part is unknown.
    """
    scores = with_said(scores, folder)
    content = build_content(scores, store, parts.leave_out, parts.beside)
    place = folder_within(folder, scores.run.name)
    frame = estimates_frame([estimate for estimates in scores.estimates.values() for estimate in estimates])
    try:
        place.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(place / "estimates.parquet")
        (place / "estimates.csv").write_bytes(encode(frame, "csv"))
        write_observations(scores, place / OBSERVATIONS)
        (place / ANSWERS).write_bytes(msgspec.json.format(msgspec.json.encode(answer_of(scores).record), indent=2))
        (place / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(scores.manifest), indent=2))
    except OSError as error:
        raise UsageError(
            f"cannot write {str(place)!r}: {error.strerror or error}. Name another with --runs.", code="file.unwritable"
        ) from None
    return write(content, place, parts.figures)


def ensure_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written, before any request; a missing folder is not created.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write {str(folder)!r}: {error.strerror or error}. Name another with --runs.",
            code="file.unwritable",
        ) from None


def build_content(
    scores: Scores, store: Store | None, leave_out: Collection[str] = (), beside: Collection[str] = ()
) -> ReportContent:
    """Return the content of the report without the parts to leave out, with published models beside the run."""
    study, manifest = scores.manifest.study, scores.manifest
    checks = integrity_words(manifest)
    return ReportContent(
        title=unproved_words(study.title) if scores.unproved else study.title,
        study=StudyInfo(name=study.name, summary=study.summary, citation=study.source),
        models=dict(manifest.identities),
        names=study.roles,
        settings=manifest.settings,
        when="" if scores.is_imported else when(scores.run),
        answer=answer_of(scores),
        estimates=[estimate for estimates in scores.estimates.values() for estimate in estimates],
        headline=scores.headline or None,
        conclusions={name: sentence for name, sentence in scores.conclusions.items() if sentence},
        calibration=manifest.calibration.told if manifest.calibration is not None else "",
        confused=scores.confused,
        warnings=warnings_of(scores),
        charts=scores.charts,
        published=published_beside_measured(scores, beside),
        missing=[table for stage in scores.stages for table in missing_tables(scores, stage)],
        methods=[
            *_design(scores),
            *described_words(manifest),
            *filter(None, [chosen_words(manifest), *scores.methods]),
        ],
        limits=study.limits,
        deviations=study.deviations,
        provenance=provenance(scores, store) | ({"endpoints by stage": checks} if checks else {}),
        **_evidence(scores, store, leave_out),
    )


def _evidence(scores: Scores, store: Store | None, leave_out: Collection[str]) -> dict[str, Any]:
    """Return the fields of the report with examples."""
    for name in leave_out:
        if name not in PARTS:
            raise UnknownNameError("part of a report", name, PARTS)
    chosen = () if store is None else (*lost_examples(scores), *scores.examples)
    if store is None:
        return {}
    beside = {} if "examples" in leave_out else {"twins": show_twins(twin_pair(scores), store, scores.run.id)}
    if not chosen:
        return beside
    if "examples" in leave_out:
        return {"left_out": "The examples were left out on request; the store has all answers."}
    examples = show_examples(chosen, store, scores.run.id, scores.manifest.unrecorded)
    if "images" in leave_out:
        return beside | {"examples": examples, "left_out": "The images were left out on request; the store has them."}
    return beside | {"examples": examples, "pictures": show_pictures(examples, store)}


def _design(scores: Scores) -> list[str]:
    """Describe the requests; for imported answers, they are not known."""
    return [] if scores.is_imported else design_words(scores.stages, scores.manifest)


def published_beside_measured(scores: Scores, beside: Collection[str] = ()) -> list[Published]:
    """Return the published values, with the run's own values if it has them; and those of the models `beside`.

    Raises:
        UsageError: no model has published values.
        UnknownNameError: one of the models has none.
    """
    stage, study = scores.stages[-1], scores.manifest.study
    estimates = [estimate for group in scores.estimates.values() for estimate in group]
    names = [str(name) for name in (study.roles.get(SUBJECT), study.options.get("published_model")) if name]
    imported = scores.manifest.mode == IMPORTED
    own = {"", *(model for name in names for model in whose(study.published, name, imported=imported))}
    models = {value.model for value in study.published if value.model}
    known = {(e.metric, *sorted(e.group.items())) for e in estimates}
    others = [
        value
        for model, values in (references(study.published, beside) if beside else {}).items()
        for value in values
        if model not in own and (value.measure, *sorted(value.group.items())) in known
    ]
    return [
        _beside(value, estimates, scores, mine=value.model in own)
        # The values of another model stand beside the run's only where no others are published, or where they are
        # asked for; they are not judged.
        for value in (*(v for v in study.published if v.model in own or len(models) < 2), *others)
        # Counts can be compared with the paper's only for the whole design.
        if value.measure != f"{stage.counting.unit}s" or not study.options
    ]


def _beside(value: PublishedValue, estimates: Sequence[Estimate], scores: Scores, *, mine: bool) -> Published:
    """Return a published value beside the run's: an estimate, or a number of units; None if it has neither."""
    stage = scores.stages[-1]
    measured, why = None, "" if mine else "of another model"
    if own := scores.manifest.study.own_data:
        # The published value is of the paper's data: beside that of other data it is no replication.
        why = ", ".join(filter(None, [why, f"measured on {', '.join(own)}"]))
    if value.measure != f"{stage.counting.unit}s":
        matches = [e for e in estimates if e.metric == value.measure and e.group == value.group]
        if len(matches) == 1:
            measured, why = matches[0].flat()[value.of], why or unresolved(value, matches[0])
    elif set(value.group) <= set(scores.frames.schema(stage.name)):
        cell = scores.lazy(stage.name).filter(*(pl.col(name) == level for name, level in value.group.items()))
        measured = cell.select(pl.len()).collect(engine="streaming").item() / stage.counting.trials
    return Published(
        metric=value.measure if value.of == "value" else f"{value.measure}, {value.of}",
        group=value.group,
        published=value.value,
        measured=measured,
        tolerance=None if why else value.width,
        note=". ".join(
            part.rstrip(".")
            for part in (" ".join(filter(None, [value.model, value.source])), value.reading, why)
            if part
        ),
    )


def missing_tables(scores: Scores, stage: Stage) -> list[Table]:
    """Return tables of a stage's answers by status, and of missing ones by reason."""
    by, observations = [*stage.counting.by, "status"], scores.lazy(stage.name)
    counts = observations.group_by(by, maintain_order=True).len("answers").sort(by).collect(engine="streaming")
    tables = [Table.from_frame(f"Answers by status, stage {stage.name!r}", counts)]
    missing = observations.filter(pl.col("status") != "ok").group_by("status", "reason").len("answers")
    reasons = missing.sort("answers", descending=True).head(20).collect(engine="streaming")
    if not reasons.is_empty():
        tables.append(Table.from_frame(f"Missing answers by reason, stage {stage.name!r} (20 most frequent)", reasons))
    return tables
