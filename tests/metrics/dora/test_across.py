"""The atlas over runs of one or several modalities, in the comparison and in its files."""

from __future__ import annotations

import polars as pl
import pytest

from prejudge.metrics.dora.metric import DoraAssociations, DoraAssociationsOptions

from .frames import completions

OPTIONS = DoraAssociationsOptions(method="fisher", resamples=99)
TWICE = 11
"""Of the twelve planted words, those that are no stop words of texts."""


def spoken(frame):
    """Return the same words as one-word texts about images: another modality."""
    return frame.with_columns(
        text=pl.col("word"),
        word=pl.lit(None, dtype=pl.String),
        image=pl.col("key").bin.encode("hex"),
        modality=pl.lit("i2t"),
        stage=pl.lit("impressions"),
    )


@pytest.fixture(scope="module")
def tables():
    """Return the listings of a biased model's words, of an unbiased one's, and of the biased one's texts."""
    biased = completions(20, seed=1)
    runs = {"biased": biased, "fair": completions(0, seed=2), "seeing": spoken(completions(20, seed=3))}
    found = DoraAssociations().across({label: (frame, OPTIONS) for label, frame in runs.items()})
    return {one.name: one.frame for one in found}


def test_atlas_has_a_column_for_every_run_modality_and_setting(tables):
    atlas = tables["atlas"]
    places = [f"{run} {setting}" for run in ("biased t2t", "fair t2t", "seeing i2t") for setting in ("noun", "verb")]
    assert set(atlas.columns) == {"dimension", "descriptor", "word", "kept_in"} | {
        f"{what}_{place}" for what in ("answers", "kept") for place in places
    }
    planted = atlas.filter(pl.col("kept_in") == 4)
    assert planted.height == TWICE and planted["answers_seeing i2t noun"].to_list() == [20] * TWICE
    assert planted["kept_fair t2t noun"].null_count() == TWICE
    assert atlas["kept_in"].is_sorted(descending=True)


def test_what_two_modalities_share_is_more_than_chance(tables):
    whole = tables["shared"].filter(pl.col("setting") == "all")
    shared = {(row["run"], row["against"]): row for row in whole.iter_rows(named=True)}
    both = shared["biased", "seeing"]
    assert both["modality"] == "t2t and i2t" and both["shared"] == TWICE and both["p_adjusted"] < 0.01
    assert not shared["fair", "seeing"]["shared"]


def test_planted_words_differ_between_models_and_not_between_modalities(tables):
    found = tables["differing"].filter(pl.col("q") <= 0.05)
    pairs = set(found.select("run", "against").rows())
    assert ("biased", "fair") in pairs and ("biased", "seeing") not in pairs
    own = found.filter(pl.col("run") == "biased")
    assert own.select("descriptor", "word", "setting").n_unique() == own.height == 24


def test_an_association_of_one_modality_alone_differs():
    # Both say the planted words; the second says them of other descriptors.
    frame = completions(20, seed=1)
    names = sorted(frame["descriptor"].unique())
    turned = spoken(frame).with_columns(
        pl.col("descriptor").replace(dict(zip(names, names[1:] + names[:1], strict=True)))
    )
    listed = DoraAssociations().across({"one": (frame, OPTIONS), "two": (turned, OPTIONS)})
    found = next(one.frame for one in listed if one.name == "differing").filter(pl.col("q") <= 0.05)
    assert found.height == 2 * TWICE and set(found["modality"]) == {"t2t and i2t"}


def test_runs_without_words_list_nothing():
    empty = completions(0).with_columns(status=pl.lit("unreadable"))
    assert DoraAssociations().across({"one": (empty, OPTIONS), "two": (completions(0), OPTIONS)}) == []
