"""A model card and a data sheet of a run, in Markdown, for publication.

The headings are those of Mitchell et al. (2019), Model Cards for Model Reporting, and Gebru et al. (2021), Datasheets
for Datasets, as far as a run has the answers. Other answers are lines for the author to complete. The texts are
templates in `cards/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import polars as pl

from ..catalogue.study import SUBJECT
from ..contracts import Estimate, Stage
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import Identity
from ..contracts.estimates import Caveat
from ..contracts.words import UNDEFINED, decimals_for, defined, exact, interval, number, p_value, percent
from ..engine.manifest import earlier_words
from ..engine.spilled import Frames
from ..scoring.score import Scores
from ..scoring.unproved import UNPROVED, unproved_words
from ..scoring.warnings import warnings_of
from .export import write_bytes
from .markdown import escape, table
from .provenance import chosen_words, times
from .text import group_words

ROWS = 60
"""Maximum number of estimates on a card; estimates.parquet has all."""
HEADS = ("measure", "group", "value", "interval", "neutral", "adjusted p", "effect", "n", "missing", "worst case")


class _Lines(str):
    """Markdown that is escaped already."""


class Results(NamedTuple):
    """The table of results and its legend."""

    heads: Sequence[str]
    rows: Sequence[tuple[object, ...]]
    numeric: Sequence[int]
    intervals: Sequence[str]
    families: Sequence[str]
    more: int


def write_card(scores: Scores, folder: Path) -> tuple[Path, Path]:
    """Write `model-card.md` and `data-sheet.md` in a folder, and return their paths.

    Raises:
        UsageError: the folder cannot be written.
    """
    texts = {"model-card.md": model_card(scores), "data-sheet.md": data_sheet(scores)}
    card, sheet = (write_bytes(text.encode(), folder / name) for name, text in texts.items())
    return card, sheet


def model_card(scores: Scores) -> str:
    """Return the model card: model, results with uncertainty, missing answers, limits."""
    identity = scores.manifest.identities.get(SUBJECT)
    return _render(
        "model-card.md",
        scores,
        subject=scores.manifest.study.roles.get(SUBJECT) or (identity.model if identity else "published scores"),
        chosen=chosen_words(scores.manifest),
        results=_results(scores),
        missing=list(_missing(scores)),
        identity_rows=lambda role, identity: _identity(role, identity, scores.manifest.described.get(role, {})),
        operation=lambda stage: OPERATIONS.get(stage.operation, stage.operation.__name__),
    )


def data_sheet(scores: Scores) -> str:
    """Return the data sheet: content, origin and uses of the observations."""
    return _render(
        "data-sheet.md",
        scores,
        # A path may reveal private folders; name and digest identify the file.
        files=[(Path(path).name, digest) for path, digest in scores.manifest.data.items()],
        column_rows=lambda stage: list(_columns(stage, scores.frames)),
        moment=_moment,
    )


def _render(name: str, scores: Scores, **values: Any) -> str:
    """Render a template; every value is escaped, so that it makes no markup."""
    template = _environment().get_template(name)
    return template.render(
        scores=scores,
        manifest=scores.manifest,
        study=scores.manifest.study,
        warnings=warnings_of(scores),
        provenance=_provenance(scores),
        table=lambda heads, rows, numeric=(): _Lines("\n".join(table(heads, rows, numeric))),
        counted=lambda count: f"{count:,}",
        **values,
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, _Lines) else escape(value),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )


def _template(name: str) -> str:
    return resources.files(__package__).joinpath("cards", name).read_text(encoding="utf-8")


def _identity(role: str, identity: Identity, described: Mapping[str, str]) -> list[tuple[str, object]]:
    return [
        ("role", role),
        ("model", identity.model),
        *((f"{name}, as its files state", value) for name, value in described.items()),
        ("adapter", f"{identity.adapter} {identity.version}"),
        ("digest or revision of its files", identity.digest or "not known"),
        *((name, "none" if value is None else value) for name, value in identity.settings.items()),
    ]


def _results(scores: Scores) -> Results:
    every = [e for estimates in scores.estimates.values() for e in estimates]
    shown = list(scores.headline) or every
    return Results(
        heads=(
            "measure",
            "group",
            "value",
            "interval",
            "neutral",
            "adjusted p",
            "effect",
            "n",
            "missing",
            "worst case",
        ),
        rows=[_estimate(e) for e in shown[:ROWS]],
        numeric=range(2, len(HEADS)),
        intervals=list(
            dict.fromkeys(f"{percent(e.interval.level)} {e.interval.method}" for e in shown if e.interval.method)
        ),
        families=list(
            dict.fromkeys(f"{e.test.correction} within {e.test.family}" for e in shown if e.p_adjusted is not None)
        ),
        more=len(every) - len(shown[:ROWS]),
    )


def _estimate(e: Estimate) -> tuple[object, ...]:
    decimals = decimals_for([e.value, e.low, e.high])
    measure = f"{e.metric} ({e.unit})" if e.unit else e.metric
    return (
        unproved_words(measure) if Caveat.UNPROVED in e.caveats else measure,
        group_words(e.group),
        number(e.value, decimals),
        interval(e.low, e.high, decimals),
        exact(e.neutral),
        p_value(e.p_adjusted if e.p_adjusted is not None else e.p),
        f"{e.effect.name} {number(e.effect.value)}" if defined(e.effect.value) else UNDEFINED,
        f"{e.n:,}",
        ", ".join(f"{count:,} {status}" for status, count in e.missing.counts.items()) or "0",
        interval(e.bound_low, e.bound_high, decimals),
    )


def _missing(scores: Scores) -> Iterator[tuple[object, ...]]:
    for stage in scores.stages:
        counts = scores.lazy(stage.name).group_by("status").len().sort("len", descending=True).collect()
        for status, count in counts.iter_rows():
            yield stage.name, status, f"{count:,}", percent(count / scores.height(stage.name), 1)


def _columns(stage: Stage, frames: Frames) -> Iterator[tuple[object, ...]]:
    for name, kind in frames.schema(stage.name).items():
        role = "factor" if name in stage.factors else "outcome" if name in stage.outcomes else "bookkeeping"
        yield name, role, str(kind), _levels(frames.lazy(stage.name).select(name).collect()[name])


def _levels(column: pl.Series) -> str:
    nulls = f", {column.null_count():,} empty" if column.null_count() else ""
    return f"{column.drop_nulls().n_unique():,}{nulls}"


def _provenance(scores: Scores) -> list[tuple[str, object]]:
    manifest = scores.manifest
    packages = ", ".join(f"{name} {version}" for name, version in manifest.packages.items())
    return [
        ("run", manifest.run),
        ("state", scores.run.state),
        *times(scores).items(),
        ("head", manifest.head or (f"{UNPROVED}: {scores.unproved}" if scores.unproved else "not recorded")),
        *([("answers of earlier runs", earlier)] if (earlier := earlier_words(manifest)) else []),
        ("prejudge", manifest.prejudge),
        ("python", f"{manifest.python}, {manifest.platform}"),
        ("packages", packages or "not recorded"),
    ]


def _moment(seconds: float | None) -> str:
    return "not recorded" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
