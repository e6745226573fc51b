"""The metric of declared measures, on outcomes whose means and spreads are recomputed by loops."""

from __future__ import annotations

import numpy as np
import polars as pl

from prejudge.metrics.measures.metric import Measures
from prejudge.testing import MetricContract

NAMES, TEMPLATES = 8, 9


def ratings(effect=0.0, seed=0, spread=2.0):
    """Return a rating per template and name, of names that lie within a gender."""
    draw = np.random.default_rng(seed)
    templates = draw.normal(0, spread, TEMPLATES)
    names = {gender: draw.normal(0, 0.5, NAMES) for gender in ("female", "male")}
    rows = [
        {
            "template": f"t{template}",
            "gender": gender,
            "name": f"{gender}{name}",
            "years": (2, 8)[name % 2],
            "outcome": 5
            + templates[template]
            + names[gender][name]
            + effect * (gender == "male")
            + draw.normal(0, 0.5),
        }
        for template in range(TEMPLATES)
        for gender in ("female", "male")
        for name in range(NAMES)
    ]
    known = {"status": "ok", "reason": None, "key": b"k"}
    frame = pl.DataFrame([row | known | {"trial": f"{row['template']}/{row['name']}"} for row in rows])
    return frame.with_columns(label=pl.when(pl.col("outcome") > 5).then(pl.lit("hire")).otherwise(pl.lit("no")))


class TestContract(MetricContract):
    make = Measures
    observations = staticmethod(ratings)
    outcomes = ("outcome", "label")
    options = {
        "measures": [
            {"difference": "gender", "levels": ["male", "female"]},
            {"share": ["hire"], "by": ["gender"]},
            {"ratio": "gender", "of": ["hire"]},
            {"name": "points", "mean": {"hire": 1, "no": -1}},
            {"ranks": "gender"},
            {"correlation": "years"},
            {"name": "rho", "correlation": "years", "method": "spearman"},
        ],
        "over": ["template", "name"],
    }
