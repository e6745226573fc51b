"""Units: what the estimates are means of."""

from __future__ import annotations

import polars as pl
import pytest

from prejudge.core.contracts import factors_of
from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.metrics.crows_pairs.metric import CrowsPairs, CrowsPairsOptions

QUICK = TriSentBiasOptions(over="template", resamples=99)


def means(units):
    """Return {(metric, group): mean where the sign is 1 less mean where it is -1}."""
    factors = factors_of(units)
    ok = units.filter(pl.col("status") == "ok")
    found = {}
    for row in ok.group_by("metric", *factors, "sign").agg(pl.col("value").mean()).to_dicts():
        sign, value, metric = row.pop("sign"), row.pop("value"), row.pop("metric")
        key = (metric, frozenset((k, v) for k, v in row.items() if v is not None))
        found[key] = found.get(key, 0.0) + sign * value
    return found


def values(estimates, without):
    return {(e.metric, frozenset(e.group.items())): e.value for e in estimates if e.metric not in without}


def test_trisentbias_units_give_every_estimate_but_ratios(study):
    observations = study(effect=0.4)
    found = means(TriSentBias().units(observations, QUICK))
    assert found == pytest.approx(values(TriSentBias().compute(observations, QUICK), {"preference", "missing"}))
    assert len(found) == 12 * (1 + 3 * 4) + 4 * (1 + 3 * 2)


def test_missing_pair_is_a_unit_without_a_value(observed):
    pairs = [{"difference": 1.0}, {"status": "refused"}, {"difference": 2.0, "sentiment": "negative"}]
    units = TriSentBias().units(observed(pairs), QUICK)
    missing = units.filter(pl.col("unit") == "p1")
    assert set(missing["status"]) == {"refused"} and missing["value"].null_count() == missing.height > 0


def test_contrast_without_its_counterpart_has_no_units(observed):
    units = TriSentBias().units(observed([{"difference": 1.0}, {"difference": 2.0}]), QUICK)
    assert "favouritism" not in set(units["metric"])


def test_crows_pairs_units_give_the_linear_scores():
    rows = [
        {
            "pair": str(i),
            "side": side,
            "direction": "stereo",
            "bias_type": kind,
            "status": "ok",
            "log_probability": score,
        }
        for i, (more, less, kind) in enumerate([(-1.0, -2.0, "age"), (-3.0, -2.0, "age"), (-2.0, -2.0, "race")])
        for side, score in (("more", more), ("less", less))
    ]
    options = CrowsPairsOptions(resamples=99)
    found = means(CrowsPairs().units(pl.DataFrame(rows), options))
    # Two more weigh both directions alike, so that no unit has a share of them; these pairs have one direction.
    ratios = {"stereotype_score", "antistereotype_score", "missing", "both_directions", "disadvantaged_preference"}
    found = {key: value for key, value in found.items() if key[0] not in ratios}
    assert found == pytest.approx(values(CrowsPairs().compute(pl.DataFrame(rows), options), ratios))
