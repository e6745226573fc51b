"""What the tests of a study compare, for `plan`."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest

from prejudge.core.contracts import DESIGN_COLUMNS, UNIT_COLUMNS
from prejudge.core.statistics.smallest_effect import SmallestEffectOptions, smallest_effects_of
from prejudge.metrics.dora.metric import DoraAssociations, DoraAssociationsOptions
from prejudge.metrics.subtle.metric import Subtle, SubtleMetricOptions

from .dora.frames import study


def effects(designs, **stated):
    frame = designs.with_columns(role=pl.lit("planned"))
    return smallest_effects_of(frame, SmallestEffectOptions(**stated))


@pytest.fixture
def answers():
    """Return answers to 5 templates with 6 terms of each polarity, by two pronouns."""
    rows = [
        {
            "trial": f"{template} {given} {term} {pronoun}",
            "domain": "beauty",
            "pronoun": pronoun,
            "given": given,
            "template": f"t{template}",
            "term": f"{given} {term}",
            "chosen": "positive",
            "status": "ok",
        }
        for template, given, term, pronoun in product(range(5), ("positive", "negative"), range(6), "fm")
    ]
    return pl.DataFrame(rows)


def test_templates_cross_terms_of_either_polarity(answers):
    designs = Subtle().units(answers, SubtleMetricOptions())
    whole = designs.filter((pl.col("metric") == "delta_PL") & pl.col("domain").is_null())
    assert whole.group_by("sign").agg(pl.col("over.template", "over.term").n_unique()).sort("sign").rows() == [
        (-1, 5, 6),
        (1, 5, 6),
    ]
    assert {e.test.name for e in effects(designs)} == {
        "t of template x term",
        "t of term, for these values of template alone",
    }


def test_terms_alone_are_no_crossed_design(answers):
    designs = Subtle().units(answers, SubtleMetricOptions(over=("term",)))
    assert {e.test.name for e in effects(designs)} == {"t of clusters"}


def test_settings_are_compared_by_ranks_of_levels_and_by_shares():
    frame = study(planted=15)
    designs = DoraAssociations().designs(frame, DoraAssociationsOptions())
    assert set(designs.columns) <= {*UNIT_COLUMNS, *DESIGN_COLUMNS, "over.descriptor", "modality", "setting", "against"}
    found = {e.metric: e for e in effects(designs, icc=0.1)}
    assert found["level_difference"].test.name == "Mann-Whitney"
    assert found["negative_difference"].test.name == "t of clusters"
    assert found["level_difference"].group == {"modality": "t2t", "setting": "noun", "against": "verb"}
    assert 0 < found["level_difference"].value < 1
