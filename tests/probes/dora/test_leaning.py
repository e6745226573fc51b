"""Models that prefer words by wording, and by nothing else, are found to associate nothing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from scipy.stats import binom

from prejudge.probes.dora import associations


@pytest.fixture(scope="module")
def leaning():
    """Return the function of the benchmark that says what is found in one model, and what is planted."""
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "dora_wordings.py"
    spec = importlib.util.spec_from_file_location("dora_wordings", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dora_wordings"] = module
    spec.loader.exec_module(module)
    yield module.leaning
    del sys.modules["dora_wordings"]


def most(models: int) -> int:
    """Return how many of so many models have a find with a chance of 99 %, if 5 % have."""
    return int(binom.ppf(0.99, models, 0.05))


MANY = {"settings": ("singular", "plural"), "samples": 40}
"""Answers enough that two sentences of one wording, counted apart, convict most such models."""


@pytest.mark.parametrize(
    ("study", "facets", "spread", "models", "options"),
    [
        ("dora-t2t", ("wording",), 2.0, 12, MANY),
        ("dora-t2i", ("wording",), 2.0, 12, {}),
        ("dora-i2t", ("wording", "question"), 2.0, 8, {}),
        *(
            pytest.param(study, facets, spread, 200, {}, marks=pytest.mark.soak)
            for study, facets in [
                ("dora-t2t", ("wording",)),
                ("dora-t2i", ("wording",)),
                ("dora-i2t", ("wording",)),
                ("dora-i2t", ("question",)),
                ("dora-i2t", ("wording", "question")),
            ]
            for spread in (1.0, 1.5, 2.0)
        ),
    ],
)
def test_preferences_by_wording_are_no_associations(leaning, study, facets, spread, models, options):
    finds = sum(bool(leaning(study, seed, spread, facets, **options)[0]) for seed in range(models))
    assert finds <= most(models)


def test_singular_and_plural_counted_apart_would_convict_them(leaning, monkeypatch):
    monkeypatch.setattr(associations, "FAMILIES", {})
    finds = sum(bool(leaning("dora-t2t", seed, 2.0, **MANY)[0]) for seed in range(12))
    assert finds > most(12)


def test_planted_associations_are_found_among_preferences_by_wording(leaning):
    kept, planted = leaning("dora-t2t", 0, 1.0, strength=3.0)
    assert len(planted) > 10 and len(kept & planted) > 0.9 * len(planted) and len(kept - planted) <= 0.1 * len(kept)


def test_longer_texts_about_some_descriptors_give_associations_that_no_preference_made(leaning):
    """The study cannot tell them from others: its first sentence says so (`longest_answers`)."""
    longer = sum(bool(leaning("dora-i2t", seed, 0.0, (), longer=3)[0]) for seed in range(8))
    alike = sum(bool(leaning("dora-i2t", seed, 0.0, ())[0]) for seed in range(8))
    assert longer > most(8) and alike <= most(8)
