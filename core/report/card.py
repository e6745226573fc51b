"""A model card and a data sheet of a run, in Markdown, for publication.

The headings follow Mitchell et al. (2019), Model Cards for Model Reporting, and Gebru et al. (2021), Datasheets for
Datasets, as far as a run can answer them. What only a person can say is left as a line to fill in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from ..catalogue.study import SUBJECT
from ..contracts import Estimate, Stage
from ..contracts.adapter import OPERATIONS, Identity
from ..scoring.score import Scores
from ..scoring.warnings import warnings_of
from .export import write_bytes
from .markdown import bullets, escape, table
from .provenance import chosen_words
from .text import decimals_for, defined, group_words, number, p_value

ROWS = 60
"""Estimates a card shows; all of them are in estimates.parquet."""
TO_FILL = "_To be filled in by who publishes this._"
USE = (
    "This card reports one study of social bias. It is meant for researchers and auditors who want to know what was"
    " measured, how, and how surely.",
    "It is no certificate of fairness. A value near neutral in this study says nothing of other groups, languages,"
    " stereotypes or uses.",
    "It must not be used to rank people or groups, nor as the only ground for a decision to release a model.",
)
HARM = "The prompts were made to measure prejudice, and prompts and answers may hurt. None of them is quoted here."


def write_card(scores: Scores, folder: Path) -> tuple[Path, Path]:
    """Write `model-card.md` and `data-sheet.md` in a folder, and return their paths.

    Raises:
        UsageError: the folder cannot be written.
    """
    texts = {"model-card.md": model_card(scores), "data-sheet.md": data_sheet(scores)}
    card, sheet = (write_bytes(text.encode(), folder / name) for name, text in texts.items())
    return card, sheet


def model_card(scores: Scores) -> str:
    """Return the model card: who was asked, what came out and how surely, what is missing and what it does not say."""
    study = scores.manifest.study
    return "\n".join(
        [
            f"# Model card: {escape(_subject(scores))} in {escape(study.title or study.name)}",
            "",
            *_warnings(scores),
            "## Model details",
            "",
            *(line for role, identity in scores.manifest.identities.items() for line in _identity(role, identity)),
            "## Intended use",
            "",
            *(f"- {text}" for text in USE),
            "",
            "## What was measured",
            "",
            *_paragraphs([study.summary, f"Study: {study.name}. Source: {study.source or 'not stated'}."]),
            "## How it was asked",
            "",
            *(line for stage in scores.stages for line in _asked(scores, stage)),
            *_paragraphs([chosen_words(scores.manifest)]),
            "## Results",
            "",
            *_paragraphs(scores.conclusions.values()),
            *_results(scores),
            "## Missing answers",
            "",
            *_missing(scores),
            "## How it was estimated",
            "",
            *_paragraphs(scores.methods),
            "## Limits",
            "",
            *bullets(study.limits or ("The study states none. That does not mean that there are none.",)),
            *(["## Deviations from the source", "", *bullets(study.deviations)] if study.deviations else []),
            "## Ethical considerations",
            "",
            HARM,
            "",
            TO_FILL,
            "",
            *_provenance(scores),
        ]
    )


def data_sheet(scores: Scores) -> str:
    """Return the data sheet: what the observations are, how they came about, and what they may be used for."""
    study, manifest = scores.manifest.study, scores.manifest
    return "\n".join(
        [
            f"# Data sheet: observations of {escape(manifest.run)}",
            "",
            *_warnings(scores),
            "## Motivation",
            "",
            *_paragraphs([f"Made to answer the question of the study {study.name}: {study.summary}"]),
            "## Composition",
            "",
            "One row is one question that was asked once, with its factors, its outcome and its status.",
            "",
            *(line for stage in scores.stages for line in _composition(stage, scores.observations[stage.name])),
            HARM,
            "",
            "## Collection",
            "",
            *_paragraphs([f"Asked between {_moment(scores.run.started)} and {_moment(scores.run.finished)} (UTC)."]),
            *bullets(f"{role}: {identity.model}" for role, identity in manifest.identities.items()),
            "## Source of the material",
            "",
            *_paragraphs([study.source or "Not stated."]),
            *_files(manifest.data),
            *bullets(manifest.notes),
            "## Preprocessing",
            "",
            "Responses are read by the probe of the study; one that cannot be read is `unreadable`, never a value."
            " Nothing is filled in.",
            "",
            "## Uses",
            "",
            "- They are meant for scoring this study again, with its own metrics or with others.",
            *(f"- {text}" for text in USE[1:]),
            "",
            "## Distribution, licence and maintenance",
            "",
            TO_FILL,
            "",
            *_provenance(scores),
        ]
    )


def _subject(scores: Scores) -> str:
    identity = scores.manifest.identities.get(SUBJECT)
    return scores.manifest.study.roles.get(SUBJECT) or (identity.model if identity else "published scores")


def _warnings(scores: Scores) -> list[str]:
    found = warnings_of(scores)
    return ["**Read this first**", "", *bullets(found)] if found else []


def _paragraphs(texts: Any) -> list[str]:
    return [line for text in texts if text for line in (escape(text), "")]


def _identity(role: str, identity: Identity) -> list[str]:
    rows: list[tuple[str, object]] = [
        ("role", role),
        ("model", identity.model),
        ("adapter", f"{identity.adapter} {identity.version}"),
        ("digest or revision of what it was loaded from", identity.digest or "not known"),
        *((name, "none" if value is None else value) for name, value in identity.settings.items()),
    ]
    return table(("", "value"), rows)


def _asked(scores: Scores, stage: Stage) -> Iterator[str]:
    frame = scores.observations[stage.name]
    operation = OPERATIONS.get(stage.operation, stage.operation.__name__)
    attempts = f", up to {stage.max_attempts} attempts each" if stage.max_attempts > 1 else ""
    yield escape(
        f"Stage {stage.name!r}: {frame.height:,} questions ({operation}) to the role {stage.role!r}{attempts}. "
        f"Factors: {', '.join(stage.factors)}. Outcomes: {', '.join(stage.outcomes)}."
    )
    yield ""


def _results(scores: Scores) -> list[str]:
    every = [e for estimates in scores.estimates.values() for e in estimates]
    shown = list(scores.headline) or every
    heads = ("measure", "for", "value", "interval", "neutral", "adjusted p", "effect", "n", "missing", "worst case")
    lines = table(heads, map(_estimate, shown[:ROWS]), numeric=(2, 3, 4, 5, 6, 7, 8, 9))
    intervals = dict.fromkeys(f"{100 * e.interval.level:g} % {e.interval.method}" for e in shown if e.interval.method)
    said = [f"Intervals: {', '.join(intervals)}."] if intervals else []
    families = dict.fromkeys(f"{e.test.correction} within {e.test.family}" for e in shown if e.p_adjusted is not None)
    said += [f"Adjusted p: {'; '.join(families)}."] if families else []
    if (rest := len(every) - len(shown[:ROWS])) > 0:
        said.append(f"{rest:,} more estimates are in estimates.parquet.")
    return [*lines, *_paragraphs(said)]


def _estimate(e: Estimate) -> tuple[object, ...]:
    decimals = decimals_for([e.value, e.low, e.high])
    return (
        f"{e.metric} ({e.unit})" if e.unit else e.metric,
        group_words(e.group),
        number(e.value, decimals),
        _range(e.low, e.high, decimals),
        "—" if e.neutral is None else f"{e.neutral:g}",
        p_value(e.p_adjusted if e.p_adjusted is not None else e.p),
        f"{e.effect.name} {number(e.effect.value)}" if defined(e.effect.value) else "—",
        f"{e.n:,}",
        ", ".join(f"{count:,} {status}" for status, count in e.missing.counts.items()) or "0",
        _range(e.bound_low, e.bound_high, decimals),
    )


def _range(low: float | None, high: float | None, decimals: int) -> str:
    return f"{number(low, decimals)} to {number(high, decimals)}" if defined(low) or defined(high) else "—"


def _missing(scores: Scores) -> list[str]:
    lines = ["What is missing is left out of the estimates and counted; it is never taken as zero.", ""]
    rows = []
    for stage in scores.stages:
        frame = scores.observations[stage.name]
        counts = dict(frame.group_by("status").len().sort("len", descending=True).iter_rows())
        rows += [(stage.name, s, f"{n:,}", f"{100 * n / frame.height:.3g} %") for s, n in counts.items()]
    return [*lines, *table(("stage", "status", "answers", "share"), rows, numeric=(2, 3))]


def _composition(stage: Stage, frame: pl.DataFrame) -> list[str]:
    lines = [escape(f"Stage {stage.name!r}: {frame.height:,} rows."), ""]
    rows = [(name, _role(stage, name), str(kind), _levels(frame[name])) for name, kind in frame.schema.items()]
    return [*lines, *table(("column", "is", "type", "different values"), rows, numeric=(3,))]


def _role(stage: Stage, name: str) -> str:
    return "factor" if name in stage.factors else "outcome" if name in stage.outcomes else "bookkeeping"


def _levels(column: pl.Series) -> str:
    nulls = f", {column.null_count():,} empty" if column.null_count() else ""
    return f"{column.drop_nulls().n_unique():,}{nulls}"


def _files(digests: Mapping[str, str]) -> list[str]:
    # A path may tell where somebody keeps their files; the name and the digest say which file it was.
    rows = [(Path(path).name, digest) for path, digest in digests.items()]
    return table(("file", "sha256"), rows) if rows else []


def _provenance(scores: Scores) -> list[str]:
    manifest = scores.manifest
    packages = ", ".join(f"{name} {version}" for name, version in manifest.packages.items())
    rows: Sequence[tuple[str, object]] = [
        ("run", manifest.run),
        ("state", scores.run.state),
        ("started", _moment(scores.run.started)),
        ("finished", _moment(scores.run.finished)),
        ("prejudge", manifest.prejudge),
        ("python", f"{manifest.python}, {manifest.platform}"),
        ("packages", packages or "not recorded"),
    ]
    return ["## Provenance", "", *table(("", "value"), rows)]


def _moment(seconds: float | None) -> str:
    return "not recorded" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
