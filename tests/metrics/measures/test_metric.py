"""The metric of declared measures, on outcomes whose means and spreads are recomputed by loops."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.contracts.options import build_options
from prejudge.metrics.measures.metric import Measures, MeasuresOptions
from prejudge.testing import MetricContract, raises_code

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


def measured(frame, *tables, over=("template", "name"), **options):
    """Return the estimates of some tables, by name and levels."""
    settings = build_options("measures", MeasuresOptions, {"measures": list(tables), "over": over, **options})
    return {(e.metric, *e.group.values()): e for e in Measures().compute(frame, settings)}


def crossed_interval(frame, first, second):
    """Return value and interval of a difference over templates that cross names of one gender each, by formulas."""
    cells = {(row["template"], row["name"]): row for row in frame.iter_rows(named=True)}
    sides = [[row for row in cells.values() if row["gender"] == gender] for gender in (first, second)]
    means = [np.mean([row["outcome"] for row in side]) for side in sides]
    templates = sorted({template for template, _ in cells})
    gaps = [
        np.subtract(*(np.mean([row["outcome"] for row in side if row["template"] == t]) for side in sides))
        for t in templates
    ]
    by_template = np.var(gaps, ddof=1) / len(gaps)
    spreads = []
    for side in sides:
        names = sorted({row["name"] for row in side})
        own = [np.mean([row["outcome"] for row in side if row["name"] == name]) for name in names]
        spreads.append((np.var(own, ddof=1) / len(own), len(own) - 1))
    by_name = sum(spread for spread, _ in spreads)
    freedom_of_names = by_name**2 / sum(spread**2 / freedom for spread, freedom in spreads)
    by_answer = sum(
        sum((row["outcome"] - mean) ** 2 for row in side) / (len(side) - 1) ** 2
        for side, mean in zip(sides, means, strict=True)
    )
    variance = max(by_template + by_name - by_answer, by_template, by_name)
    freedom = variance**2 / (by_template**2 / (len(gaps) - 1) + by_name**2 / freedom_of_names)
    reach = stats.t.ppf(0.975, freedom) * variance**0.5
    value = means[0] - means[1]
    return value, value - reach, value + reach


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_difference_has_the_interval_of_crossed_formulas(seed):
    frame = ratings(effect=0.6, seed=seed)
    e = measured(frame, {"difference": "gender", "levels": ["male", "female"]})["difference_gender",]
    assert (e.value, e.low, e.high) == pytest.approx(crossed_interval(frame, "male", "female"), rel=1e-6)


def test_groups_with_other_templates_are_compared_within_them():
    rows = [
        {"template": f"t{t}", "gender": gender, "outcome": float(t), "status": "ok"}
        for t in range(8)
        for gender, times in (("male", t + 1), ("female", 8 - t))
        for _ in range(times)
    ]
    frame = pl.DataFrame(rows)
    by_gender = dict(frame.group_by("gender").agg(pl.col("outcome").mean()).iter_rows())
    assert by_gender["male"] - by_gender["female"] > 2
    e = measured(frame, {"difference": "gender"}, over=("template",))["difference_gender",]
    assert e.value == pytest.approx(0, abs=1e-12)
    assert not e.shown


def test_weights_are_those_of_mantel_and_haenszel():
    draw = np.random.default_rng(3)
    rows = [
        {"template": f"t{t}", "gender": gender, "outcome": draw.normal() + t, "status": "ok"}
        for t in range(7)
        for gender in ("a", "b")
        for _ in range(draw.integers(1, 5))
    ]
    above = below = 0.0
    for template in {row["template"] for row in rows}:
        a, b = ([r["outcome"] for r in rows if r["template"] == template and r["gender"] == g] for g in "ab")
        weight = len(a) * len(b) / (len(a) + len(b))
        above, below = above + weight * (np.mean(a) - np.mean(b)), below + weight
    e = measured(pl.DataFrame(rows), {"difference": "gender"}, over=("template",))["difference_gender",]
    assert e.value == pytest.approx(above / below)


def test_templates_of_one_group_do_not_convict_a_fair_model():
    """Each template has one gender, as in many tables of answers: rows of a template are no independent evidence."""
    naive = clustered = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        rows = [
            {"template": f"t{t}", "gender": "fm"[t % 2], "outcome": effect + draw.normal(0, 0.5), "status": "ok"}
            for t, effect in enumerate(draw.normal(0, 1, 16))
            for _ in range(10)
        ]
        frame = pl.DataFrame(rows)
        sides = [frame.filter(gender=g)["outcome"].to_numpy() for g in "fm"]
        naive += stats.ttest_ind(*sides).pvalue < 0.05
        e = measured(frame, {"difference": "gender"}, over=("template",))["difference_gender",]
        clustered += e.shown
    assert naive > 40
    assert clustered <= 11  # of 100 at 5 %: more have a chance of 0.4 %


def test_a_share_is_counted_and_its_missing_are_by_group():
    frame = ratings().with_columns(
        status=pl.when((pl.col("gender") == "male") & (pl.col("template") == "t0"))
        .then(pl.lit("refused"))
        .otherwise("status")
    )
    found = measured(frame, {"share": ["hire"], "by": ["gender"]}, {"difference": "gender"})
    ok = [row for row in frame.iter_rows(named=True) if row["status"] == "ok" and row["gender"] == "male"]
    assert found["share", "male"].value == pytest.approx(100 * sum(row["label"] == "hire" for row in ok) / len(ok))
    assert found["missing", "male"].missing.counts == {"refused": NAMES}
    assert found["missing", "female"].value == 0


def test_a_mean_of_labels_gives_each_its_number():
    frame = ratings()
    e = measured(frame, {"name": "points", "mean": {"hire": 1, "no": -1}})["points",]
    labels = frame["label"].to_list()
    assert e.value == pytest.approx(np.mean([1 if label == "hire" else -1 for label in labels]))
    assert e.neutral == 0
    assert e.low < e.value < e.high


def test_a_label_without_a_number_is_refused():
    with raises_code(DataError, "data.unknown-value", "label"):
        measured(ratings(), {"name": "points", "mean": {"hire": 1}})


def test_a_ratio_has_its_interval_on_the_log_scale():
    frame = ratings(effect=0.5, seed=5)
    found = measured(frame, {"ratio": "gender", "of": ["hire"], "reference": "male"})
    rates = {
        gender: np.mean([row["label"] == "hire" for row in frame.iter_rows(named=True) if row["gender"] == gender])
        for gender in ("female", "male")
    }
    e = found["ratio_gender",]
    assert e.value == pytest.approx(rates["female"] / rates["male"])
    assert found["ratio_gender_rate", "male"].value == pytest.approx(100 * rates["male"])
    assert (e.neutral, e.high / e.value) == pytest.approx((1, e.value / e.low))


def test_of_several_groups_a_ratio_to_the_greatest_rate_is_not_tested():
    frame = ratings().with_columns(gender=pl.when(pl.col("years") == 2).then(pl.lit("other")).otherwise("gender"))
    found = measured(frame, {"ratio": "gender", "of": ["hire"]}, over=("template",))
    pairs = [e for (name, *_), e in found.items() if name == "ratio_gender"]
    assert len(pairs) == 2
    assert all(e.value <= 1 and e.p is None and e.low is not None for e in pairs)


def test_a_group_that_is_never_selected_has_no_ratio():
    rows = [
        {"name": f"{g}{n}", "gender": g, "label": "hire" if g == "m" and n % 2 else "no", "status": "ok"}
        for g in "fm"
        for n in range(8)
    ]
    found = measured(
        pl.DataFrame(rows),
        {"ratio": "gender", "of": ["hire"]},
        {"name": "gap", "difference": "gender", "of": ["hire"]},
        over=("name",),
    )
    assert found["ratio_gender",].value is None
    assert (found["gap",].value, found["ratio_gender_rate", "f"].value) == (-50, 0)


@pytest.mark.parametrize(
    ("method", "scipy_name"), [("pearson", "pearsonr"), ("spearman", "spearmanr"), ("kendall", "kendalltau")]
)
def test_correlations_are_those_of_scipy(method, scipy_name):
    frame = ratings().with_columns(
        outcome=pl.col("outcome").round(0), years=pl.col("name").str.slice(-1).cast(pl.Int64)
    )
    e = measured(frame, {"name": "r", "correlation": "years", "method": method})["r",]
    expected = getattr(stats, scipy_name)(frame["years"].to_numpy(), frame["outcome"].to_numpy()).statistic
    assert e.value == pytest.approx(expected)
    assert e.low < e.value < e.high


def test_ranks_are_cliffs_delta():
    frame = ratings(effect=1.0)
    male, female = (frame.filter(gender=g)["outcome"].to_list() for g in ("male", "female"))
    delta = np.mean([np.sign(m - f) for m in male for f in female])
    e = measured(frame, {"ranks": "gender", "levels": ["male", "female"]})["ranks_gender",]
    assert e.value == pytest.approx(delta)


def test_where_and_by_choose_rows():
    frame = ratings(effect=0.7)
    found = measured(frame, {"difference": "gender", "where": {"years": 8}, "by": ["template"]})
    rows = frame.filter(pl.col("years") == 8, template="t3")
    means = dict(rows.group_by("gender").agg(pl.col("outcome").mean()).iter_rows())
    assert found["difference_gender", "t3"].value == pytest.approx(means["female"] - means["male"])
    assert found["difference_gender",].n == frame.height // 2


def test_without_a_sample_there_is_no_interval():
    frame = ratings(effect=3.0)
    tables = ({"difference": "gender"}, {"share": ["hire"]})
    found = measured(frame, *tables, over=())
    assert all(
        found[name].low is None and found[name].p is None
        for name in [("difference_gender",), ("share_hire",)]
        if name in found
    )
    assert found["difference_gender",].verdict is None
    assert Caveat.UNTESTED in found["difference_gender",].caveats
    alone = measured(frame, *tables, over=(), independent=True)["difference_gender",]
    a, b = (frame.filter(gender=g)["outcome"].to_numpy() for g in ("female", "male"))
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (alone.low, alone.high) == pytest.approx((expected.low, expected.high), rel=1e-3)


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ({"share": "hire", "mean": "outcome"}, "measures.kind"),
        ({"name": "x"}, "measures.kind"),
        ({"share": "hire", "name": "Two words"}, "measures.name"),
        ({"difference": "value"}, "options.reserved"),
        ({"ratio": "gender", "of": {"hire": 1}}, "measures.kind"),
    ],
)
def test_a_measure_that_cannot_be_computed_is_refused(table, code):
    with raises_code(UsageError, code):
        measured(ratings(), table)


def test_two_measures_of_one_name_are_refused():
    with raises_code(UsageError, "measures.name", "mean"):
        measured(ratings(), {"mean": "outcome"}, {"name": "mean", "mean": {"hire": 1, "no": 0}})


def test_an_unknown_level_is_refused():
    with raises_code(DataError, "data.unknown-value", "gender"):
        measured(ratings(), {"difference": "gender", "levels": ["male", "woman"]})


def test_one_level_is_nothing_to_compare():
    with raises_code(DataError, "data.unknown-value", "gender"):
        measured(ratings().filter(gender="male"), {"difference": "gender"})


def test_a_label_that_no_answer_can_have_is_refused():
    with raises_code(DataError, "data.unknown-value", "label"):
        measured(ratings(), {"share": ["hier"]}, labels=("hire", "no"))


def test_each_of_several_pairs_has_its_label():
    frame = ratings().with_columns(gender=pl.when(pl.col("years") == 2).then(pl.lit("other")).otherwise("gender"))
    found = measured(frame, {"difference": "gender"}, over=("template",))
    labels = {e.label for (name, *_), e in found.items() if name == "difference_gender"}
    assert labels == {
        f"Difference of outcome: {pair}" for pair in ("female minus male", "female minus other", "male minus other")
    }


def test_a_difference_that_every_answer_shows_is_shown():
    """A model without chance, which always gives men one grade more, leaves nothing to estimate a variance from."""
    frame = ratings().with_columns(outcome=pl.when(gender="male").then(6.0).otherwise(5.0))
    for over in (("template", "name"), ("template",)):
        e = measured(frame, {"difference": "gender", "levels": ["male", "female"]}, over=over)["difference_gender",]
        assert (e.value, e.verdict) == (1, "above")
