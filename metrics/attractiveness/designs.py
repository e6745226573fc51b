"""What the tests of the attractiveness study compare, so that `plan` can say what they would find."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from .filter import WILCOXON
from .groups import BY_FACE, CHANGE
from .scores import LABELS, Scores
from .shares import HALO
from .words import units


def designs(scores: Scores) -> pl.DataFrame:
    """Return the changes of faces by scenario, with and without ranks and crossed; and the faces of each group."""
    changes = units(scores)
    directed = [s.id for s in scores.scenarios if s.positive is not None]
    halo = changes.filter(pl.col("scenario").is_in(directed)).select(
        pl.exclude("scenario", "metric"),
        metric=pl.lit(HALO),
        row=pl.col("scenario"),
        ways=pl.lit("scenario x face"),
    )
    ranked = changes.with_columns(metric=pl.lit(WILCOXON), test=pl.lit("wilcoxon"))
    return pl.concat([halo, changes, ranked, *_groups(scores, changes)], how="diagonal")


def _groups(scores: Scores, changes: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the faces of known gender, age group and race: the means of their images, and their changes."""
    for by in LABELS:
        if len(scores.levels(by)) < 2:
            continue
        known = np.tile(scores.codes(by) >= 0, len(scores.scenarios))
        labels = pl.Series("level", list(scores.labels[by]) * len(scores.scenarios), dtype=pl.String)
        rows = changes.with_columns(labels, by=pl.lit(by), test=pl.lit("kruskal-wallis")).filter(known)
        yield rows.with_columns(metric=pl.lit(CHANGE))
        means = scores.score.mean(axis=-1).ravel()
        yield rows.with_columns(metric=pl.lit(BY_FACE), value=pl.Series(means[known]).fill_nan(None), least=pl.lit(0.0))
