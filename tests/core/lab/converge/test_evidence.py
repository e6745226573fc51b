"""Evidence of one model: the common scale, and whether methods agree. Opponents: methods that only seem to."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from prejudge.core.catalogue.constructs import Construct, Method
from prejudge.core.contracts import Estimate
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.lab.converge.across import Kind, matrix
from prejudge.core.lab.converge.evidence import Finding, absent, evidence_of, judge, row_of
from prejudge.core.lab.converge.scale import place
from prejudge.testing import raises_code


def method(scale="difference", **more):
    return Method(study="a-study", measure="effect", scale=scale, **more)


def estimate(value, low=None, high=None, *, p=None, unit="", neutral=0.0, **more):
    return Estimate.from_flat(
        metric="effect", group={}, value=value, low=low, high=high, p=p, unit=unit, neutral=neutral, n=50, **more
    )


@pytest.mark.parametrize(
    ("scale", "row", "wanted"),
    [
        ("difference", estimate(0.2, 0.1, 0.3), (0.2, 0.1, 0.3)),
        ("difference", estimate(20, 10, 30, unit="percentage points"), (0.2, 0.1, 0.3)),
        ("share", estimate(75, 50, 90, unit="%", neutral=50), (0.5, 0.0, 0.8)),
        ("share", estimate(0.25, 0.1, 0.5, neutral=0.5), (-0.5, -0.8, 0.0)),
        ("difference", estimate(120, 90, 150, unit="percentage points"), (1.0, 0.9, 1.0)),
    ],
)
def test_common_scale(scale, row, wanted):
    found = place(row, method(scale))
    assert (found.value, found.low, found.high) == pytest.approx(wanted) and not found.approximate


def test_standardised_differences_are_converted_by_normal_distributions():
    row = estimate(3.0, effect=0.8, effect_low=0.2, effect_high=1.4, effect_name="Cohen's d", unit="nats")
    groups, units = place(row, method("d")), place(row, method("dz"))
    x, y = stats.norm(0.8, 1).rvs(200_000, random_state=1), stats.norm(0, 1).rvs(200_000, random_state=2)
    assert groups.value == pytest.approx((x > y).mean() - (x < y).mean(), abs=0.01)
    assert units.value == pytest.approx((x > 0).mean() - (x < 0).mean(), abs=0.01)
    assert groups.approximate and groups.low < groups.value < groups.high


def test_sign_turns_the_interval():
    found = place(estimate(0.2, 0.1, 0.5), method(sign=-1))
    assert (found.value, found.low, found.high) == (-0.2, -0.5, -0.1)


def test_clusters_that_all_agree_have_an_interval_of_their_number():
    found = place(estimate(100, unit="percentage points", clusters=14), method())
    exact = stats.binomtest(14, 14).proportion_ci(0.95)
    assert (found.value, found.high) == (1, 1) and found.low == pytest.approx(2 * exact.low - 1)
    turned = place(estimate(-100, unit="percentage points", clusters=14), method())
    assert turned.high == -found.low
    assert place(estimate(60, unit="percentage points", clusters=14), method()).low is None


def test_error_is_of_the_wider_side_of_cohens_h():
    found = place(estimate(0.9, 0.5, 1.0), method())
    side = (2 * math.asin(math.sqrt(0.95)) - math.pi / 2) - (2 * math.asin(math.sqrt(0.75)) - math.pi / 2)
    assert found.error == pytest.approx(side / stats.norm.ppf(0.975))
    assert place(estimate(0.0, 0.0, 0.0), method()).error is None


@pytest.mark.parametrize("row", [estimate(0.4, neutral=None), estimate(1.3, unit="nats"), estimate(60, unit="%")])
def test_wrong_scale_is_refused(row):
    with raises_code(DataError, "construct.scale"):
        place(row, method("share"))


def construct(**methods):
    return Construct(name="trait", title="A trait", direction="more of it", methods=methods)


def judged(model="m", materials=None, runs=None, **rows):
    """Judge methods by their rows; each is a material and a run of its own unless these say otherwise."""
    one = construct(**{name: method("difference") for name in rows})
    found = [
        evidence_of(
            row,
            one.methods[name],
            {
                "model": model,
                "method": name,
                "material": (materials or {}).get(name, name),
                "run": (runs or {}).get(name, name),
            },
        )
        for name, row in rows.items()
    ]
    return judge(one, model, found)


ABOVE, BELOW = estimate(0.5, 0.3, 0.7, p=1e-6), estimate(-0.5, -0.7, -0.3, p=1e-6)
OPEN = estimate(0.1, -0.2, 0.4, p=0.5)


@pytest.mark.parametrize(
    ("rows", "finding", "above", "below"),
    [
        ({"a": ABOVE, "b": ABOVE}, Finding.AGREE_ABOVE, 2, 0),
        ({"a": BELOW, "b": BELOW, "c": OPEN}, Finding.AGREE_BELOW, 0, 2),
        ({"a": ABOVE, "b": BELOW}, Finding.CONFLICT, 1, 1),
        ({"a": ABOVE, "b": OPEN, "c": OPEN}, Finding.ONE_SOURCE, 1, 0),
        ({"a": OPEN, "b": OPEN}, Finding.NOT_SHOWN, 0, 0),
        # All values on one side are no agreement, if none is shown.
        ({name: estimate(0.1, -0.1, 0.3, p=0.3) for name in "abcde"}, Finding.NOT_SHOWN, 0, 0),
        # Nor are tests that would each pass alone: of five, two are expected to in 2 % of fair models.
        ({"a": estimate(0.3, p=0.03), "b": estimate(0.3, p=0.03), "c": OPEN, "d": OPEN}, Finding.NOT_SHOWN, 0, 0),
        ({"a": ABOVE, "b": estimate(0.9)}, Finding.TOO_FEW, 1, 0),
        ({"a": None, "b": None}, Finding.TOO_FEW, 0, 0),
    ],
)
def test_findings(rows, finding, above, below):
    found = judged(**rows)
    assert (found.finding, found.above, found.below) == (finding, above, below)


def test_ways_of_asking_the_same_questions_are_one_source():
    found = judged(materials={"a": "words", "b": "words"}, a=ABOVE, b=ABOVE, c=OPEN)
    assert found.finding is Finding.ONE_SOURCE and found.sources == 2
    assert [pair.one_material for pair in found.pairs] == [True, False, False]


def test_methods_of_one_run_are_one_source_whatever_their_material():
    found = judged(runs={"a": "r", "b": "r"}, a=ABOVE, b=ABOVE, c=OPEN)
    assert (found.finding, found.sources) == (Finding.ONE_SOURCE, 2)
    assert [pair.one_material for pair in found.pairs] == [True, False, False]
    chained = judged(runs={"a": "r", "b": "r"}, materials={"b": "w", "c": "w"}, a=ABOVE, c=ABOVE, b=OPEN)
    assert (chained.finding, chained.sources) == (Finding.TOO_FEW, 1)


def test_absent_row_names_those_that_there_are():
    rows = [estimate(1.0).replace(group={"gender": gender}) for gender in ("women", "men")]
    assert "sex=men" in (said := absent({"m": rows}, method(group={"sex": "men"})))
    assert "gender=women; gender=men" in said


def test_what_a_method_lacks_is_said():
    found = judged(
        few=estimate(0.9, clusters=2),
        floor=estimate(0.9, p=0.5, caveats=(Caveat.P_FLOOR,)),
        none=estimate(None, caveats=(Caveat.UNDEFINED,), note="all answers are missing"),
        row=None,
        good=ABOVE,
    )
    lacks = {one.method: bool(one.lacking) for one in found.evidence}
    assert lacks == {"few": True, "floor": True, "none": True, "row": True, "good": False}
    assert "all answers are missing" in found.evidence[2].lacking
    assert found.left_out == ("few", "floor") and found.heterogeneity is None
    assert {pair.first for pair in found.pairs} | {pair.second for pair in found.pairs} == {"few", "floor", "good"}


def test_difference_of_two_methods():
    (pair,) = judged(a=estimate(0.5, 0.3, 0.8, p=0.01), b=estimate(0.1, -0.1, 0.2, p=0.4)).pairs
    assert pair.same_sign and pair.difference == pytest.approx(0.4)
    assert pair.low == pytest.approx(0.4 - math.hypot(0.2, 0.1)) and pair.high == pytest.approx(
        0.4 + math.hypot(0.3, 0.2)
    )


def test_several_rows_are_refused_and_the_exact_one_is_taken():
    rows = [
        estimate(1.0).replace(group={"gender": g, **more}) for g in ("women", "men") for more in ({}, {"kind": "x"})
    ]
    assert row_of({"m": rows}, method(group={"gender": "women"})) is rows[0]
    with raises_code(DataError, "construct.row"):
        row_of({"m": rows[1:]}, method(group={}))
    assert row_of({"m": rows}, method(group={"gender": "other"})) is None
    assert row_of({"m": rows}, method(metric="other", group={"gender": "women"})) is None


def traits(noise):
    """Six models by two methods of two traits; the methods agree on a trait, and the traits differ."""
    first, second = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.4, 0.1, 0.6, 0.2, 0.5, 0.3]
    made = []
    for name, values in (("one", first), ("two", second)):
        for number, value in enumerate(values):
            rows = {"a": estimate(value, p=0.5), "b": estimate(value + noise[number], p=0.5)}
            found = judged(model=f"m{number}", **rows)
            made.append(type(found)(**{f: getattr(found, f) for f in found.__struct_fields__} | {"construct": name}))
    return made


def test_convergent_and_discriminant_correlations():
    found = matrix(traits([0.01] * 6))
    kinds = [one.kind for one in found.correlations]
    assert len(kinds) == 6 and kinds.count(Kind.CONVERGENT) == 2 and kinds.count(Kind.METHOD) == 2
    taus = {kind: [one.found.tau for one in found.correlations if one.kind is kind] for kind in Kind}
    assert taus[Kind.CONVERGENT] == pytest.approx([1, 1]) and max(taus[Kind.DISCRIMINANT] + taus[Kind.METHOD]) < 0.3
    assert found.exceeding == found.comparisons == 8


def test_methods_that_order_models_otherwise_do_not_converge():
    found = matrix(traits([0.5, 0.3, 0.1, -0.1, -0.3, -0.5]))
    own = next(one for one in found.correlations if one.kind is Kind.CONVERGENT)
    assert own.found.tau < 0 and found.exceeding < found.comparisons
