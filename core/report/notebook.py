"""A result as a notebook shows it: the conclusions, and tables behind a click. Every text of it is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl
from markupsafe import Markup, escape

from ..contracts.estimates import Estimate
from ..contracts.words import UNDEFINED, decimals_for, defined, number, p_value
from ..scoring.warnings import warnings_of
from .text import clean, group_words

if TYPE_CHECKING:
    from .result import Result
    from .results import Run

ROWS = 100
"""Estimates that are shown; `.estimates` has all."""
HEADS = ("measure", "group", "value", "interval", "neutral", "n", "adjusted p")


def result_html(result: Result) -> str:
    """Return a result as HTML without script, style sheet or address: its table is closed until it is asked for."""
    frame = result.estimates
    parts = [_tag("h4", result.title), *(_tag("p", text) for text in (*result.conclusion.split("\n"), *result.notes))]
    if frame.height:
        rows = ([_cell(value) for value in row] for row in frame.head(ROWS).iter_rows())
        parts.append(_closed(_counted("Estimates", frame.height), _table(frame.columns, rows)))
    if result.report is not None:
        parts.append(_tag("p", f"Report: {result.report}"))
    return str(Markup("<div>{}</div>").format(Markup("").join(parts)))


def run_html(run: Run) -> str:
    """Return a run as HTML without script, style sheet or address: tables are closed until they are asked for."""
    study, models = run.manifest.study, run.manifest.study.roles
    told = f"{study.title or study.name}: {', '.join(f'{role} {name}' for role, name in models.items())}"
    parts = [_tag("h4", f"Run {run.name}"), _tag("p", told)]
    parts += [_tag("p", text) for text in (*run.conclusions.values(), *run.scores.confused)]
    if run.calibration is not None:
        parts.append(_tag("p", f"Calibration: {run.calibration.told}"))
    if warnings := warnings_of(run.scores):
        parts.append(_closed(f"Warnings ({len(warnings):,})", Markup("").join(_tag("p", one) for one in warnings)))
    estimates = [e for every in run.scores.estimates.values() for e in every]
    if estimates:
        parts.append(_closed(_counted("Estimates", len(estimates)), _table(HEADS, map(_row, estimates[:ROWS]))))
    if run.report is not None:
        parts.append(_tag("p", f"Report: {run.report}"))
    return str(Markup("<div>{}</div>").format(Markup("").join(parts)))


def _row(estimate: Estimate) -> tuple[str, ...]:
    e, decimals = estimate, decimals_for([estimate.value, estimate.low, estimate.high])
    interval = f"{number(e.low, decimals)} to {number(e.high, decimals)}" if defined(e.low) else UNDEFINED
    name = e.label or e.metric
    p = e.p_adjusted if e.p_adjusted is not None else e.p
    neutral = UNDEFINED if e.neutral is None else number(e.neutral, decimals)
    value = number(e.value, decimals) if defined(e.value) else UNDEFINED
    unit = f"{name} ({e.unit})" if e.unit else name
    return unit, group_words(e.group), value, interval, neutral, f"{e.n:,}", p_value(p)


def _counted(title: str, rows: int) -> str:
    return f"{title} ({rows:,}{f', the first {ROWS:,}; .estimates has all' if rows > ROWS else ''})"


def _cell(value: object) -> str:
    if value is None:
        return UNDEFINED
    if isinstance(value, pl.Series | list | tuple):
        return ", ".join(str(item) for item in value)
    return number(value) if isinstance(value, float) else str(value)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    head = Markup("").join(_tag("th", one) for one in heads)
    lines = (Markup("").join(_tag("td", cell) for cell in row) for row in rows)
    body = Markup("").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _closed(title: str, inside: Markup) -> Markup:
    return Markup("<details><summary>{}</summary>{}</details>").format(title, inside)


def _tag(name: str, text: str) -> Markup:
    return Markup(f"<{name}>{{}}</{name}>").format(escape(clean(text)))
