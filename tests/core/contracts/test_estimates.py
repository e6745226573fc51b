"""An estimate in parts: the row of a table there and back, the constructor, copies."""

import copy
import pickle
import timeit

import pytest

from prejudge.core.contracts.estimates import (
    COLUMNS,
    Caveat,
    Effect,
    Estimate,
    Interval,
    Missing,
    SignificanceTest,
    Verdict,
)

FLAT = {
    **{"metric": "m", "group": {"g": 1}, "value": 0.3, "neutral": 0.0, "unit": "share", "low": 0.1, "high": 0.5},
    **{"level": 0.9, "interval": "bootstrap", "n": 20, "clusters": 5, "missing": {"refused": 2}, "bound_low": -0.1},
    **{"bound_high": 0.6, "test": "t", "statistic": 2.5, "p": 0.01, "p_adjusted": 0.02, "family": "f"},
    **{"correction": "Holm", "effect": 0.4, "effect_name": "d", "effect_low": 0.1, "effect_high": 0.7},
    **{"verdict": Verdict.ABOVE, "caveats": (Caveat.FEW_CLUSTERS,), "facts": {"main": True}, "note": "n", "topic": ""},
}
WHOLE = Estimate(
    metric="m",
    group={"g": 1},
    value=0.3,
    neutral=0.0,
    unit="share",
    n=20,
    clusters=5,
    interval=Interval(0.1, 0.5, 0.9, "bootstrap"),
    test=SignificanceTest("t", 2.5, 0.01, 0.02, "f", "Holm"),
    effect=Effect("d", 0.4, 0.1, 0.7),
    missing=Missing({"refused": 2}, -0.1, 0.6),
    verdict=Verdict.ABOVE,
    caveats=(Caveat.FEW_CLUSTERS,),
    facts={"main": True},
    note="n",
)


def test_row_of_a_table_is_the_same_estimate():
    assert tuple(FLAT) == COLUMNS
    assert Estimate.from_flat(**FLAT) == WHOLE and WHOLE.flat() == FLAT


@pytest.mark.parametrize("name", ["low", "p", "effect_name"])
def test_constructor_takes_no_column_of_a_part(name):
    with pytest.raises(TypeError, match=name):
        Estimate(metric="m", group={}, value=1.0, **{name: FLAT[name]})


@pytest.mark.parametrize(
    ("name", "kind"),
    [("interval", "Interval"), ("missing", "Missing"), ("test", "SignificanceTest"), ("effect", "Effect")],
)
def test_part_of_another_type_is_refused(name, kind):
    with pytest.raises(TypeError, match=rf"{name} .*{name}={kind}\(\.\.\.\)"):
        Estimate(metric="m", group={}, value=1.0, **{name: FLAT[name]})


def test_facts_of_two_estimates_are_apart():
    one, other = (Estimate(metric="m", group={}, value=1.0) for _ in range(2))
    one.facts["main"] = True
    assert other.facts == {}


def test_unknown_field_is_refused():
    with pytest.raises(TypeError, match="lower"):
        Estimate(metric="m", group={}, value=1.0, lower=0.0)


def test_replace_changes_one_field_of_a_part_and_keeps_the_others():
    changed = WHOLE.replace(high=0.6, p=0.5, note="other")
    assert changed.interval == Interval(0.1, 0.6, 0.9, "bootstrap") and changed.note == "other"
    assert WHOLE.replace(interval="BCa").interval == Interval(0.1, 0.5, 0.9, "BCa")
    assert changed.test == SignificanceTest("t", 2.5, 0.5, 0.02, "f", "Holm") and WHOLE.high == 0.5


def test_estimates_are_frozen_and_can_be_copied_and_pickled():
    with pytest.raises(AttributeError):
        WHOLE.value = 1.0
    assert copy.deepcopy(WHOLE) == WHOLE == pickle.loads(pickle.dumps(WHOLE))


def test_an_estimate_is_made_fast():
    fields = {name: getattr(WHOLE, name) for name in Estimate.__struct_fields__}
    assert min(timeit.repeat(lambda: Estimate(**fields), number=1000, repeat=3)) < 0.1


def test_shown_is_above_or_below():
    assert [WHOLE.replace(verdict=v).shown for v in (*Verdict, None)] == [True, True, False, False, False]
