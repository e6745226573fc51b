"""What a design can show, from a pilot or a stated spread."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest

from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.words import explained
from prejudge.core.statistics.power import (
    CrossedDesign,
    Design,
    GroupsDesign,
    RankDesign,
    levels_needed,
    minimum_detectable_effect,
)
from prejudge.core.statistics.smallest_effect import SmallestEffectOptions, smallest_effects_of
from prejudge.testing import raises_code


def units(role="planned", clusters=12, size=5, values=None, sign=1, limits=(None, None)):
    """Return units of one measure: `size` in each cluster."""
    n = clusters * size
    names = [f"{sign}-{number // size}" for number in range(n)]
    return pl.DataFrame(
        {
            "metric": ["m"] * n,
            "axis": ["height"] * n,
            "unit": [str(i) for i in range(n)],
            "over.cluster": names,
            "sign": [sign] * n,
            "value": [None] * n if values is None else list(values),
            "least": [limits[0]] * n,
            "greatest": [limits[1]] * n,
            "status": [role if values is None else "ok"] * n,
            "role": [role] * n,
        },
        schema_overrides={"value": pl.Float64, "least": pl.Float64, "greatest": pl.Float64},
    )


def smallest(frame, **options):
    (found,) = smallest_effects_of(frame, SmallestEffectOptions(**options))
    return found


@pytest.fixture
def answers():
    rng = np.random.default_rng(0)
    return np.repeat(rng.normal(size=200), 5) + rng.normal(size=1000)


def test_stated_spread_and_correlation_give_the_formula():
    found = smallest(units(), spread=2.0, icc=0.1)
    assert found.value == pytest.approx(minimum_detectable_effect(Design(clusters=12, size=5, spread=2.0, icc=0.1)))
    assert found.group == {"axis": "height"}
    assert (found.n, found.clusters) == (60, 12)


def test_pilot_of_another_size_gives_its_spread_and_correlation(answers):
    found = smallest(pl.concat([units(), units("pilot", 200, values=answers)]), spread=99.0)
    expected = Design(clusters=12, size=5, spread=np.sqrt(2), icc=0.5)
    assert found.value == pytest.approx(minimum_detectable_effect(expected), rel=0.1)
    assert "from the pilot" in explained(found)


def test_measure_with_limits_varies_as_much_as_it_can():
    found = smallest(units(limits=(0.0, 100.0)), spread=4.0)
    assert found.value == pytest.approx(minimum_detectable_effect(Design(clusters=12, size=5, spread=50.0)))
    assert "not known" in explained(found)


def test_contrast_is_of_two_groups_of_clusters():
    found = smallest(pl.concat([units(), units(clusters=9, sign=-1)]), spread=1.0, icc=0.0)
    assert found.value == pytest.approx(minimum_detectable_effect(Design(clusters=9, size=5, groups=2)))


def test_more_power_needs_a_larger_effect():
    assert smallest(units(), spread=1.0, power=0.9).value > smallest(units(), spread=1.0, power=0.8).value


def test_without_pilot_or_limits_the_spread_is_asked_for():
    found = smallest(units())
    assert found.value is None
    assert explained(found).startswith("undefined: not known without --spread or --pilot")


def test_crossed_units_without_a_spread_ask_for_it():
    found = smallest(crossed())
    assert found.value is None
    assert explained(found).startswith("undefined: not known without --spread or --pilot")


def test_one_cluster_is_undefined():
    found = smallest(units(clusters=1, limits=(0.0, 1.0)))
    assert (found.value, explained(found)) == (None, "undefined: fewer than two clusters")


ALIKE = "the pilot's answers are all equal"
UNREAD = "the pilot has fewer than two readable answers"


@pytest.mark.parametrize(("values", "why"), [([3.0] * 60, ALIKE), ([None] * 60, UNREAD)])
def test_pilot_that_tells_no_spread_is_named(values, why):
    tried = units("pilot", values=values, limits=(0.0, 100.0))
    assert f"maximum standard deviation, because {why}" in explained(
        smallest(pl.concat([units(limits=(0.0, 100.0)), tried]))
    )
    free = smallest(pl.concat([units(), units("pilot", values=values)]))
    assert (free.value, explained(free)) == (None, f"undefined: {why}, and the measure has no limits")


def test_group_that_the_pilot_lacks_is_named(answers):
    tried = units("pilot", 200, values=answers).with_columns(axis=pl.lit("weight"))
    assert explained(smallest(pl.concat([units(), tried]))).startswith(f"undefined: {UNREAD}")


def test_pilot_of_zeros_leaves_no_ranks():
    tried = asked("wilcoxon", role="pilot", values=[0.0] * 60)
    found = smallest(pl.concat([asked("wilcoxon"), tried]))
    assert (found.value, explained(found)) == (None, "undefined: all differences of the pilot are 0")


def test_too_few_clusters_for_a_sign_flip_are_named():
    assert "p_floor" in smallest(units(clusters=5), spread=1.0).caveats


@pytest.mark.parametrize("wrong", [{"power": 0.01}, {"spread": 0.0}, {"spread": float("inf")}, {"icc": -0.1}])
def test_wrong_option_is_refused(wrong):
    with raises_code(UsageError, "options.value"):
        SmallestEffectOptions(**wrong)


def crossed(role="planned", rows=8, clusters=30, values=None):
    """Return units of `rows` that each meet every cluster."""
    frame = units(role, clusters, rows, values)
    row = [str(number % rows) for number in range(frame.height)]
    return (
        frame.rename({"over.cluster": "over.face"})
        .with_columns(pl.Series("over.story", row))
        .select(pl.exclude("over.face"), "over.face")
    )


def test_crossed_units_have_an_effect_for_other_rows_and_one_for_these():
    other, these = smallest_effects_of(crossed(), SmallestEffectOptions(spread=2.0, icc=0.2, row_icc=0.1))
    design = CrossedDesign(levels=(8, 30), spread=2.0, shares=(0.1, 0.2))
    assert other.value == pytest.approx(minimum_detectable_effect(design))
    assert these.value == pytest.approx(minimum_detectable_effect(design.last_alone))
    assert (other.test.name, these.test.name) == ("t of story x face", "t of face, for these values of story alone")
    assert "share of its variance by story 0.10 (stated), by face 0.20 (stated)" in explained(other)


def test_crossed_effects_say_what_more_levels_of_either_facet_would_detect():
    stated = SmallestEffectOptions(spread=2.0, icc=0.2, row_icc=0.1, effects={"m": 0.9})
    other, these = smallest_effects_of(crossed(), stated)
    design = CrossedDesign(levels=(8, 30), spread=2.0, shares=(0.1, 0.2))
    for place, facet, levels in ((0, "story", (16, 30)), (1, "face", (8, 60))):
        larger = msgspec.structs.replace(design, levels=levels)
        assert other.facts[f"twice_{facet}"] == pytest.approx(minimum_detectable_effect(larger))
        assert other.facts[f"needed_{facet}"] == (levels_needed(design, place, 0.9) or 0)
    assert "twice_story" not in these.facts


def test_crossed_pilot_tells_what_rows_and_clusters_add():
    rng = np.random.default_rng(4)
    column, row, rest = rng.normal(size=(200, 1)), rng.normal(size=(1, 150)), rng.normal(size=(200, 150))
    tried = crossed("pilot", 150, 200, (column + row / 2 + rest).ravel())
    other, _ = smallest_effects_of(pl.concat([crossed(), tried]), SmallestEffectOptions())
    design = CrossedDesign(levels=(8, 30), spread=1.5, shares=(0.25 / 2.25, 1 / 2.25))
    assert other.value == pytest.approx(minimum_detectable_effect(design), rel=0.1)


def test_crossed_contrast_has_groups_of_columns():
    frame = pl.concat(
        [crossed(), crossed().with_columns(-pl.col("sign"), ("-" + pl.col("over.face")).alias("over.face"))]
    )
    found, _ = smallest_effects_of(frame, SmallestEffectOptions(spread=1.0, icc=0.2, row_icc=0.1))
    design = CrossedDesign(levels=(8, 30), shares=(0.1, 0.2), groups=2)
    assert found.value == pytest.approx(minimum_detectable_effect(design))


def test_unknown_share_of_rows_is_named():
    found, _ = smallest_effects_of(crossed(), SmallestEffectOptions(spread=1.0, icc=0.2))
    assert "by story 0.00 (not known, taken as 0: the effect may be larger)" in explained(found)


def test_one_row_is_no_crossing():
    found = smallest(crossed(rows=1), spread=1.0)
    assert found.value == pytest.approx(minimum_detectable_effect(Design(clusters=30)))


def asked(test, **more):
    return units(**more).with_columns(test=pl.lit(test))


def test_signed_ranks_need_no_spread():
    found = smallest(asked("wilcoxon", size=1))
    assert found.value == pytest.approx(minimum_detectable_effect(RankDesign(clusters=12)))
    assert found.unit == "matched-pairs rank-biserial"


def test_signed_ranks_leave_out_the_zeros_of_a_pilot():
    values = np.where(np.arange(200) % 2, 0.0, np.random.default_rng(0).normal(size=200))
    tried = asked("wilcoxon", role="pilot", clusters=200, size=1, values=values)
    found = smallest(pl.concat([asked("wilcoxon", clusters=60, size=1), tried]))
    assert found.value == pytest.approx(minimum_detectable_effect(RankDesign(clusters=60, size=0.5)))
    assert "50 % of the pilot's differences are 0" in explained(found)


def test_ranks_of_two_groups_take_the_correlation_of_ranks(answers):
    planned = [asked("mann-whitney"), asked("mann-whitney", sign=-1)]
    # A steep curve leaves ranks as they are, and changes everything else.
    tried = asked("mann-whitney", role="pilot", clusters=200, values=np.exp(3 * answers))
    found = smallest(pl.concat([*planned, tried]))
    design = RankDesign(clusters=12, size=5, icc=6 / np.pi * np.arcsin(0.25), groups=2)
    assert found.value == pytest.approx(minimum_detectable_effect(design), rel=0.05)
    assert found.unit == "Cliff's delta"


@pytest.mark.parametrize("test", ["kruskal-wallis", "anova"])
def test_groups_have_an_effect_in_units_of_f(test):
    levels = [asked(test, clusters=n, size=1, sign=1).with_columns(level=pl.lit(f"g{n}")) for n in (10, 20, 12)]
    frame = pl.concat(levels).with_columns((pl.col("level") + pl.col("over.cluster")).alias("over.cluster"))
    found = smallest(frame)
    design = GroupsDesign(clusters=(10, 12, 20), ranks=test == "kruskal-wallis")
    assert found.value == pytest.approx(minimum_detectable_effect(design))
    assert (found.unit, explained(found)) == ("Cohen's f", "3 groups of 10 to 20")


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (asked("wilcoxon", clusters=4, size=1), "can detect no effect with 4 clusters"),
        (asked("wilcoxon", clusters=1), "fewer than two clusters"),
        (asked("mann-whitney"), "fewer than two clusters"),
        (asked("kruskal-wallis").with_columns(level=pl.lit("one")), "fewer than two groups"),
    ],
)
def test_what_no_test_of_ranks_can_find_is_undefined(frame, why):
    found = smallest(frame)
    assert found.value is None
    assert why in explained(found)


def test_unknown_test_is_refused():
    with raises_code(DataError, "data.unknown-value", "'mood'"):
        smallest(asked("mood"))


def test_shares_that_sum_up_to_more_than_all_are_refused():
    with raises_code(UsageError, "options.value"):
        SmallestEffectOptions(icc=0.7, row_icc=0.5)
