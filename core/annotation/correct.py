"""Correct the estimates of a run: the corrected value stands in the facts of each, and the raw one stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from ..catalogue.refusal_stage import last_measured
from ..catalogue.study import Catalogue
from ..compare.pair import key_of
from ..contracts.corrected import CORRECTED, RAW, Correction
from ..contracts.errors import UnknownNameError, UsageError
from ..contracts.estimates import Estimate, Key
from ..contracts.words import level_word
from ..scoring.score import Scores
from .labelled import labelled_answers, sample_at
from .matrix import Matrix, by_matrix, read_matrix
from .powered import Corrected, powered
from .rows import UNUSED, Changed, changes
from .samples import Sample
from .verdicts import Judged, judged

T = TypeVar("T", Changed, Judged)
LABELS = "prediction-powered inference (PPI++), by {n} labels of people"
UNSETTLED = " ({n} more answers have no label that most people gave)"
MOST_LEVELS = 20
"""Levels of an outcome that are looked at; with more it is no verdict."""
MATRIX = "Rogan-Gladen, by an error matrix of {n} answers"
NOT_A_MEAN = "annotation.measure"


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
    answers = labelled_answers(sample, scores)
    unsettled = UNSETTLED.format(n=f"{answers.unsettled:,}") if answers.unsettled else ""

    def correct(changed: Changed, level: float) -> Correction:
        assert changed.rows is not None and changed.labelled is not None
        corrected = powered(changed.rows, changed.labelled, level, changed.step)
        n = len(changed.labelled.rows)
        return _correction(corrected, changed.ends, level, LABELS.format(n=f"{n:,}") + unsettled, labels=n)

    by_metric = {name: changes(catalogue, scores, name, answers) for name in scores.metrics}
    return _with_corrections(scores, by_metric, answers.design.verdict, correct)


def correct_by_matrix(catalogue: Catalogue, scores: Scores, matrix: Matrix, column: str = "") -> Scores:
    """Return the run with its shares, and differences of shares, corrected by a known error matrix.

    `column` names the outcome that has the errors; by default the one with the labels of the matrix.

    Raises:
        UsageError: no outcome has these labels, or several; no estimate reads it.
    """
    column = column or _column_of(scores, matrix)
    if column not in scores.frame.columns:
        raise UnknownNameError("outcome", column, scores.frame.columns)

    def correct(verdicts: Judged, level: float) -> Correction:
        assert verdicts.rows is not None and verdicts.cells is not None
        counts = [matrix.counts[key] for key in verdicts.keys]
        corrected = by_matrix(verdicts.rows, np.array(verdicts.of_label), verdicts.cells, counts, level)
        n = int(sum(cells.sum() for cells in counts))
        return _correction(corrected, (-np.inf, np.inf), level, MATRIX.format(n=f"{n:,}"))

    by_metric = {name: judged(catalogue, scores, name, matrix, column) for name in scores.metrics}
    return _with_corrections(scores, by_metric, column, correct)


def _correction(
    corrected: Corrected, ends: tuple[float, float], level: float, method: str, labels: int = 0
) -> Correction:
    value, low, high = (float(end) for end in np.clip([corrected.value, corrected.low, corrected.high], *ends))
    closer = CORRECTED if corrected.closer else RAW
    return Correction(value=value, low=low, high=high, level=level, method=method, labels=labels, closer=closer)


def _column_of(scores: Scores, matrix: Matrix) -> str:
    frame = scores.frame
    exact, near = [], dict[str, set[str]]()
    for name in frame.columns:
        if name in last_measured(scores.stages).factors:
            continue  # what was asked has no errors
        levels = frame[name].drop_nulls().unique()
        words = {level_word(level) for level in levels.head(MOST_LEVELS)}
        if words and words <= set(matrix.levels):
            exact.append(name)
        elif words >= set(matrix.levels):
            near[name] = words - set(matrix.levels)
    if not exact and near:
        others = "; ".join(f"{name!r} also has {', '.join(map(repr, sorted(more)))}" for name, more in near.items())
        raise UsageError(
            f"the labels of the matrix are {', '.join(matrix.levels)}, and {others}. Give a matrix of all of them, or "
            "correct this run by labels of people (--labels).",
            code="annotation.matrix",
        )
    if len(exact) != 1:
        raise UsageError(
            f"the labels of the matrix are {', '.join(matrix.levels)}, and these outcomes have them: "
            f"{', '.join(exact) or 'none'}. Name the one that has the errors with --outcome.",
            code="annotation.column",
        )
    return exact[0]


def _with_corrections(
    scores: Scores,
    by_metric: Mapping[str, Mapping[Key, T] | None],
    column: str,
    correct: Callable[[T, float], Correction],
) -> Scores:
    """Return the run with the corrections of all estimates beside them.

    Raises:
        UsageError: there is none, with the reason of the first.
    """

    def correction(estimate: Estimate, sources: Mapping[Key, T] | None) -> Correction:
        if sources is None:
            return Correction(code=UNUSED, why=f"its metric does not see {column!r}")
        source = sources.get(key_of(estimate.metric, estimate.group))
        return _not_a_mean(column) if source is None else _corrected(source, estimate.interval.level, correct)

    estimates, reasons, done = dict[str, Any](), dict[str, str](), 0
    for name, raw in scores.estimates.items():
        estimates[name] = []
        for estimate in raw:
            if estimate.value is None:
                estimates[name].append(estimate)
                continue
            result = correction(estimate, by_metric[name])
            reasons.setdefault(result.code, result.why)
            done += result.value is not None
            estimates[name].append(result.added_to(estimate))
    if not done:
        named = ((code, why) for code, why in reasons.items() if code not in (UNUSED, NOT_A_MEAN))
        code, why = next(named, (UNUSED, f"no mean of rows, or difference of two, is of {column!r}"))
        raise UsageError(f"nothing can be corrected: {why}.", code=code)
    by_key = {(e.metric, repr(e.group)): e for corrected in estimates.values() for e in corrected}
    headline = tuple(by_key.get((e.metric, repr(e.group)), e) for e in scores.headline)
    return msgspec.structs.replace(scores, estimates=estimates, headline=headline)


def _not_a_mean(column: str) -> Correction:
    """Return the refusal of a ratio, a rank, log-odds or a count: what one label changes in it depends on the others.

    Source: prediction-powered inference is unbiased for means; of another function of the labels it is so only for
    errors so small that the function is a line (Angelopoulos and others 2023).
    """
    why = f"it is no mean of rows, or difference of two: what errors of {column!r} do to it is not known"
    return Correction(code=NOT_A_MEAN, why=why)


def _corrected(source: T, level: float, correct: Callable[[T, float], Correction]) -> Correction:
    if source.rows is None:
        return Correction(code=source.code, why=source.why)
    try:
        return correct(source, level)
    except UsageError as error:
        return Correction(code=error.code, why=str(error).rstrip("."))
