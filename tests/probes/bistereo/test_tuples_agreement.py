"""The agreement of annotators on tuples."""

from __future__ import annotations

import polars as pl

from prejudge.core.statistics.resampling import Resampling
from prejudge.probes.bistereo.tuples_agreement import tuple_agreement

QUICK = Resampling(resamples=199)


def _ratings(*rows):
    return pl.DataFrame(rows, schema=["tuple", "annotator", "stereotype"], orient="row")


def test_agreement_counts_annotators_and_thresholds():
    rows = [(f"t{n}", who, int(n < most)) for n in range(8) for who, most in (("ana", 4), ("bo", 5), ("cy", 2))]
    found = tuple_agreement(_ratings(*rows), QUICK)
    assert found.yes == {"ana": (4, 8), "bo": (5, 8), "cy": (2, 8)} and found.thresholds == {1: 5, 2: 4, 3: 2}
    said = "\n".join(found.lines())
    assert f"{found.alpha.alpha:.3f} (nominal, 95 % interval" in said and "at least 2: 4 tuples" in said


def test_undefined_agreement_is_said():
    found = tuple_agreement(_ratings(("t", "ana", 1), ("t", "bo", 1), ("u", None, None)), QUICK)
    assert found.alpha.alpha is None and "undefined" in next(found.lines()) and found.alpha.unrated == 1
