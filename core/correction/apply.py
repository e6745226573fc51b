"""Correct the estimates of a run: the corrected value stands in the facts of each, and the raw one stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from ..anytime.units import Key
from ..catalogue.study import Catalogue
from ..compare.pair import key_of
from ..contracts.corrected import CORRECTED, RAW, Correction, correction_of
from ..contracts.errors import UnknownNameError, UsageError
from ..contracts.words import level_word
from ..scoring.score import Scores
from ..view.labels import Sample
from .labels import sample_at, told_of
from .matrix import Matrix, by_matrix, read_matrix
from .powered import powered
from .rows import UNUSED, Changed, changes
from .verdicts import Judged, judged

T = TypeVar("T", Changed, Judged)
LABELS = "prediction-powered inference (PPI++), by {n} labels of people"
UNSETTLED = " ({n} more answers have no label that most people gave)"
MOST_LEVELS = 20
"""Levels of an outcome that are looked at; with more it is no verdict."""
MATRIX = "Rogan-Gladen, by an error matrix of {n} answers"


def corrected_run(
    catalogue: Catalogue, scores: Scores, labels: str | Path | None = None, matrix: str | None = None, outcome: str = ""
) -> Scores:
    """Return a run with its estimates corrected by labels, or by an error matrix; as it is without either.

    Args:
        catalogue: Of the run's study.
        scores: The run.
        labels: The folder of a sample.
        matrix: A CSV file, see `read_matrix`.
        outcome: The outcome that has the errors of the matrix; by default the one with its labels.

    Raises:
        UsageError: nothing can be corrected, and why; or both are given.
        DataError: a file cannot be read.
    """
    if labels is not None and matrix is not None:
        raise UsageError(
            "labels and an error matrix are given. Labels of this run say more: leave the matrix out.",
            code="options.conflict",
        )
    if labels is not None:
        return correct_by_labels(catalogue, scores, sample_at(labels))
    return scores if matrix is None else correct_by_matrix(catalogue, scores, read_matrix(matrix), outcome)


def correct_by_labels(catalogue: Catalogue, scores: Scores, sample: Sample) -> Scores:
    """Return the run with its estimates corrected by the labels of a sample of its answers.

    Raises:
        UsageError: the labels are too few, no random sample, or of other answers; no estimate reads what was labelled.
    """
    told = told_of(sample, scores)
    rest = UNSETTLED.format(n=f"{told.unsettled:,}") if told.unsettled else ""

    def one(changed: Changed, level: float) -> Correction:
        assert changed.rows is not None and changed.labelled is not None
        found = powered(changed.rows, changed.labelled, level, changed.step)
        low, high = np.clip([found.low, found.high], *changed.ends)
        n = len(changed.labelled.rows)
        return Correction(
            value=float(np.clip(found.value, *changed.ends)),
            low=float(low),
            high=float(high),
            level=level,
            method=LABELS.format(n=f"{n:,}") + rest,
            labels=n,
            closer=CORRECTED if found.closer else RAW,
        )

    made = {name: changes(catalogue, scores, name, told) for name in scores.metrics}
    return _with(scores, made, told.design.verdict, one)


def correct_by_matrix(catalogue: Catalogue, scores: Scores, matrix: Matrix, column: str = "") -> Scores:
    """Return the run with its shares, and differences of shares, corrected by a known error matrix.

    `column` names the outcome that has the errors; by default the one with the labels of the matrix.

    Raises:
        UsageError: no outcome has these labels, or several; no estimate reads it.
    """
    column = column or _column_of(scores, matrix)
    if column not in scores.frame.columns:
        raise UnknownNameError("outcome", column, scores.frame.columns)

    def one(found: Judged, level: float) -> Correction:
        assert found.rows is not None and found.cells is not None
        counts = [matrix.counts[key] for key in found.keys]
        made = by_matrix(found.rows, np.array(found.of_label), found.cells, counts, level)
        n = int(sum(own.sum() for own in counts))
        return Correction(
            value=made.value,
            low=made.low,
            high=made.high,
            level=level,
            method=MATRIX.format(n=f"{n:,}"),
            closer=CORRECTED if made.closer else RAW,
        )

    every = {name: judged(catalogue, scores, name, matrix, column) for name in scores.metrics}
    return _with(scores, every, column, one)


def _column_of(scores: Scores, matrix: Matrix) -> str:
    frame = scores.frame
    fit, near = [], dict[str, set[str]]()
    for name in frame.columns:
        if name in scores.stages[-1].factors:
            continue  # what was asked has no errors
        levels = frame[name].drop_nulls().unique()
        words = {level_word(level) for level in levels.head(MOST_LEVELS)}
        if words and words <= set(matrix.levels):
            fit.append(name)
        elif words >= set(matrix.levels):
            near[name] = words - set(matrix.levels)
    if not fit and near:
        told = "; ".join(f"{name!r} also has {', '.join(map(repr, sorted(more)))}" for name, more in near.items())
        raise UsageError(
            f"the labels of the matrix are {', '.join(matrix.levels)}, and {told}. Give a matrix of all of them, or "
            "correct this run by labels of people (--labels).",
            code="annotation.matrix",
        )
    if len(fit) != 1:
        found = ", ".join(fit) or "none"
        raise UsageError(
            f"the labels of the matrix are {', '.join(matrix.levels)}, and these outcomes have them: {found}. Name "
            "the one that has the errors with --outcome.",
            code="annotation.column",
        )
    return fit[0]


def _with(
    scores: Scores, made: Mapping[str, Mapping[Key, T] | None], column: str, correct: Callable[[T, float], Correction]
) -> Scores:
    """Return the run with the corrections of all estimates beside them.

    Raises:
        UsageError: there is none, with the reason of the first.
    """
    estimates, first, done = dict[str, Any](), dict[str, str](), 0
    for name, every in scores.estimates.items():
        own, known = [], made[name]
        for estimate in every:
            if estimate.value is None:
                own.append(estimate)
                continue
            changed = (known or {}).get(key_of(estimate.metric, estimate.group))
            if changed is None:
                found = _unused(column) if known is None else _not_a_mean(column)
            else:
                found = _corrected(changed, estimate.interval.level, correct)
                first.setdefault(found.code, found.why)
            done += found.value is not None
            own.append(found.added_to(estimate))
        estimates[name] = own
    if not done:
        why = {code: why for code, why in first.items() if code != UNUSED}
        code, told = next(iter(why.items()), (UNUSED, f"no mean of rows, or difference of two, is of {column!r}"))
        raise UsageError(f"nothing can be corrected: {told}.", code=code)
    by_key = {(e.metric, repr(e.group)): e for own in estimates.values() for e in own}
    headline = tuple(by_key.get((e.metric, repr(e.group)), e) for e in scores.headline)
    return msgspec.structs.replace(scores, estimates=estimates, headline=headline)


def _unused(column: str) -> Correction:
    return Correction(code=UNUSED, why=f"its metric does not see {column!r}")


def _not_a_mean(column: str) -> Correction:
    """Return the refusal of a ratio, a rank, log-odds or a count: what one label changes in it depends on the others.

    Source: prediction-powered inference is unbiased for means; of another function of the labels it is so only for
    errors so small that the function is a line (Angelopoulos and others 2023).
    """
    why = f"it is no mean of rows, or difference of two: what errors of {column!r} do to it is not known"
    return Correction(code="annotation.measure", why=why)


def _corrected(changed: T, level: float, correct: Callable[[T, float], Correction]) -> Correction:
    if changed.rows is None:
        return Correction(code=changed.code, why=changed.why)
    try:
        return correct(changed, level)
    except UsageError as error:
        return Correction(code=error.code, why=str(error).rstrip("."))


def frame(scores: Scores) -> pl.DataFrame:
    """Return a row per estimate that was to be corrected: raw value and interval, and the fields of `Correction`."""
    rows = []
    for e in (one for every in scores.estimates.values() for one in every):
        if (found := correction_of(e)) is not None:
            own = {"corrected" if k == "value" else k: v for k, v in msgspec.structs.asdict(found).items()}
            rows.append({"metric": e.metric, **e.group, "raw": e.value, "raw_low": e.low, "raw_high": e.high} | own)
    return pl.DataFrame(rows, infer_schema_length=None)
