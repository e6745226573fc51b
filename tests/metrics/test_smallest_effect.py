"""What a design can show, from a pilot or a stated spread."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from prejudge.core.errors import UsageError
from prejudge.metrics._power import Design, minimum_detectable_effect
from prejudge.metrics.smallest_effect import SmallestEffect, SmallestEffectOptions


def units(role="planned", clusters=12, size=5, values=None, sign=1, limits=(None, None)):
    """Return units of one measure: `size` in each cluster."""
    n = clusters * size
    names = [f"{sign}-{number // size}" for number in range(n)]
    return pl.DataFrame(
        {
            "metric": ["m"] * n,
            "axis": ["height"] * n,
            "unit": [str(i) for i in range(n)],
            "cluster": names,
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
    (found,) = SmallestEffect().compute(frame, SmallestEffectOptions(**options))
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
    assert "spread from the pilot" in found.note


def test_measure_with_limits_varies_as_much_as_it_can():
    found = smallest(units(limits=(0.0, 100.0)), spread=4.0)
    assert found.value == pytest.approx(minimum_detectable_effect(Design(clusters=12, size=5, spread=50.0)))
    assert "not known" in found.note


def test_contrast_is_of_two_groups_of_clusters():
    found = smallest(pl.concat([units(), units(clusters=9, sign=-1)]), spread=1.0, icc=0.0)
    assert found.value == pytest.approx(minimum_detectable_effect(Design(clusters=9, size=5, groups=2)))


def test_more_power_needs_a_larger_effect():
    assert smallest(units(), spread=1.0, power=0.9).value > smallest(units(), spread=1.0, power=0.8).value


@pytest.mark.parametrize("frame", [units(), units(clusters=1, limits=(0.0, 1.0))])
def test_unknown_spread_or_one_cluster_is_undefined(frame):
    found = smallest(frame)
    assert found.value is None
    assert found.note.startswith("undefined")


def test_too_few_clusters_for_a_sign_flip_are_named():
    assert "cannot reach 0.05" in smallest(units(clusters=5), spread=1.0).note


@pytest.mark.parametrize("wrong", [{"power": 0.01}, {"spread": 0.0}, {"icc": -0.1}])
def test_wrong_option_is_refused(wrong):
    with pytest.raises(UsageError, match="Give"):
        SmallestEffectOptions(**wrong)
