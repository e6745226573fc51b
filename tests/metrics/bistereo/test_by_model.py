"""The paper's figures and table of several models."""

from __future__ import annotations

import itertools

import pytest

from prejudge.core.charts.numbers import numbers_of
from prejudge.core.contracts.estimates import Estimate
from prejudge.metrics.bistereo.by_model import inferences, preferences, table_2
from prejudge.metrics.bistereo.nli import BIStereoNLI
from prejudge.metrics.bistereo.trisentbias import TriSentBias

from ...captions import long_captions


def cells(z2, z3, threshold=0.02, **facts):
    """Return z1, z2 and z3 of women and men in both contexts on one axis."""
    found = []
    for gender, sentiment in itertools.product(("women", "men"), ("positive", "negative")):
        group = {"axis": "height", "gender": gender, "sentiment": sentiment, "threshold": threshold}
        values = {"z1": 100 - z2 - z3, "z2": z2, "z3": z3}
        found += [Estimate.from_flat(metric=name, group=group, value=v, facts=facts) for name, v in values.items()]
    return found


MAIN = {"main_threshold": True}


def test_stacked_bars_have_a_chart_per_axis_and_context_and_a_bar_per_model_and_gender():
    runs = {"bert": cells(70.0, 20.0, **MAIN), "muril": [*cells(10.0, 85.0, **MAIN), *cells(99.0, 1.0, 0.04)]}
    charts = preferences(runs)
    assert [chart.name for chart in charts] == ["trisentbias-height-positive", "trisentbias-height-negative"]
    assert long_captions(charts) == []
    for chart in charts:
        labels = [text.get_text() for text in chart.figure.axes[0].get_xticklabels()]
        assert labels == ["bert\nwomen", "muril\nwomen", "bert\nmen", "muril\nmen"]
        (numbers,) = numbers_of(chart.figure)
        assert numbers.columns == ("bar", "prefers desirable", "within threshold", "prefers undesirable")
        assert numbers.rows[3] == ("muril, men", 10.0, 5.0, 85.0) and "99.0" not in str(numbers.rows)
        assert not any(part in chart.caption for part in ("10.0", "85.0"))


def test_star_of_one_model_is_not_that_of_another():
    starred = cells(70.0, 20.0, star_binomial=True, **MAIN)
    (chart, _) = preferences({"bert": cells(70.0, 20.0, **MAIN), "muril": starred})
    texts = [text.get_text() for text in chart.figure.axes[0].texts]
    assert texts.count("*") == 2


def test_headline_has_the_three_shares_of_every_cell_at_the_main_threshold_only():
    found = TriSentBias().headline([*cells(70.0, 20.0, **MAIN), *cells(60.0, 10.0, 0.04)])
    assert [e.metric for e in found].count("z2") == 4 and {e.group["threshold"] for e in found} == {0.02}


def labels(entailment, contradiction):
    return [
        Estimate.from_flat(metric=name, group={"gender": "men", "category": "bad behaviour", "skin": skin}, value=value)
        for skin in ("dark", "fair")
        for name, value in (("entailment", entailment), ("contradiction", contradiction), ("neutral", 0.0))
    ]


def test_inferences_of_all_models_stand_side_by_side_and_the_effects_too():
    halo = [Estimate.from_flat(metric="halo_and_horn", group={}, value=value, neutral=0.0) for value in (5.0, 50.0)]
    runs = {"bart": [*labels(3.0, 4.0), halo[0]], "llama": [*labels(95.0, 1.0), halo[1]]}
    chart, effects = BIStereoNLI().side_by_side(runs)
    assert chart.name == "bistereo-nli-models-men" and effects.name == "levels-halo_and_horn"
    contradiction, entailment = chart.figure.axes
    assert [text.get_text() for text in entailment.get_xticklabels()] == [
        "bad\nbehaviour\nfair",
        "bad\nbehaviour\ndark",
    ]
    assert sorted(round(bar.get_height()) for bar in entailment.patches) == [3, 3, 95, 95]
    assert sorted(round(bar.get_height()) for bar in contradiction.patches) == [1, 1, 4, 4]
    assert ("bad behaviour fair", "llama", 95.0) in numbers_of(chart.figure)[1].rows
    assert "95" not in chart.caption and long_captions([chart, effects]) == []


def test_side_by_side_draws_nothing_of_a_study_without_answers():
    assert inferences({"a": [], "b": []}, ("halo",)) == preferences({"a": [], "b": []}) == []


def test_table_2_has_a_row_per_gender_and_a_column_per_model():
    def run(men, women, **more):
        told = {"biased_preference": (men, women), **more}
        rows = [
            Estimate.from_flat(metric=name, group={"gender": gender}, value=value)
            for name, values in told.items()
            for gender, value in zip(("men", "women"), values, strict=True)
        ]
        other = Estimate.from_flat(
            metric="biased_preference", group={"gender": "men", "dimension": "height"}, value=1.0
        )
        return [other, *rows]

    (table,) = table_2({"gemma": run(43.2, 62.0), "llama": run(52.2, None, biased_preference_swapped=(51.0, 49.0))})
    assert table.frame.columns == ["measure", "gender", "gemma", "llama"]
    assert table.frame.rows() == [
        ("biased_preference", "men", 43.2, 52.2),
        ("biased_preference", "women", 62.0, None),
        ("biased_preference_swapped", "men", None, 51.0),
        ("biased_preference_swapped", "women", None, 49.0),
    ]


@pytest.mark.parametrize("axis", ["skin complexion", "body shape"])
def test_chart_of_another_axis_has_its_own_name(axis):
    told = [e.replace(group={**e.group, "axis": axis}) for e in cells(1.0, 2.0, **MAIN)]
    assert preferences({"a": told})[0].name == f"trisentbias-{axis.replace(' ', '-')}-positive"
