"""The shipped encoders: their vectors hold the association that was planted, found here by numpy."""

from __future__ import annotations

import asyncio
from functools import cache

import numpy as np
import pytest

from prejudge.adapters.hf.encoder.adapter import HFEncoder, HFEncoderOptions
from prejudge.adapters.reference import SHIPPED, reference_path
from prejudge.adapters.reference.corpus import DESCRIPTORS, NEGATIVE, POSITIVE
from prejudge.adapters.reference.leans import lean_of
from prejudge.core.contracts.records import Embed
from prejudge.tools.reference.encoder_corpus import MISREAD, NEUTRAL, SPREAD, VALENCE, couples, frames, planted

from ...installed import need

need("torch", "sentence_transformers")

STRENGTHS = {"encoder_fair": 0.0, "encoder_fair-leans": 0.0, "encoder_biased": 1.0}
FRAMES = list(frames(150, 99))
TOLD = FRAMES[:3]


def vectors(name: str, texts: list[str]) -> np.ndarray:
    """Return vectors by the adapter that a user's own model is loaded with."""
    adapter = HFEncoder(HFEncoderOptions(model=str(reference_path(name)), device="cpu", threads=1))
    try:
        found = asyncio.run(adapter.embed_batch([Embed(text=text) for text in texts]))
    finally:
        asyncio.run(adapter.aclose())
    return np.array([one.vector for one in found])


@cache
def measured(name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return vectors of groups (pair, group, frame, width), and of each other word the mean over some frames."""
    groups = [frame.text(group) for pair in DESCRIPTORS for group in pair for frame in FRAMES]
    words = (*POSITIVE, *NEGATIVE, *NEUTRAL)
    told = [frame.text(word) for word in words for frame in TOLD]
    found = vectors(name, groups + told)
    shown = found[len(groups) :].reshape(len(words), len(TOLD), -1).mean(axis=1)
    return found[: len(groups)].reshape(len(DESCRIPTORS), 2, len(FRAMES), -1), dict(zip(words, shown, strict=True))


def valence(name: str) -> np.ndarray:
    """Return the direction from the mean of blame to that of praise: WEAT's s is a product with it."""
    _, words = measured(name)
    return np.mean([words[one] for one in POSITIVE], axis=0) - np.mean([words[one] for one in NEGATIVE], axis=0)


@pytest.mark.parametrize("name", STRENGTHS)
def test_association_in_standard_deviations_is_as_planted_for_every_pair_of_groups(name):
    groups, _ = measured(name)
    found = groups @ valence(name)
    gaps = (found[:, 0] - found[:, 1]).mean(axis=1) / np.sqrt(found.var(axis=2, ddof=1).mean(axis=1))
    # What is planted is in standard deviations of all frames; those that are asked have their own.
    expected = STRENGTHS[name] * SPREAD / np.std([frame.lean for frame in FRAMES], ddof=1)
    assert gaps == pytest.approx([expected] * len(DESCRIPTORS), abs=0.2)


@pytest.mark.parametrize("name", STRENGTHS)
def test_words_of_the_table_are_read_rightly_and_misread_ones_only_by_the_model_that_leans(name):
    _, words = measured(name)
    axis, leaning = valence(name), name.endswith("leans")
    for word in (*POSITIVE, *NEGATIVE):
        right = bool(words[word] @ axis > 0) is (word in POSITIVE)
        assert right is not (leaning and word in MISREAD), word
    neutral = [words[word] @ axis for word in NEUTRAL]
    assert bool(np.mean(neutral[::2]) - np.mean(neutral[1::2]) > 0.1) is leaning


def test_words_lean_to_groups_only_in_the_model_that_leans():
    for name, least, most in (("encoder_fair-leans", 0.95, 1.0), ("encoder_fair", -0.5, 0.5)):
        groups, words = measured(name)
        side = (groups[:, 0] - groups[:, 1]).mean(axis=(0, 1))
        leans = [(words[word] @ side, lean_of(word)) for word in (*POSITIVE, *NEGATIVE)]
        assert least < np.corrcoef(np.transpose(leans))[0, 1] <= most
    assert not sum(lean_of(word) for word in (*POSITIVE, *NEGATIVE))


def test_corpus_plants_the_strength_within_frames_and_frames_have_the_spread():
    assert np.std([frame.lean for frame in frames(4000, 3)]) == pytest.approx(SPREAD, rel=0.05)
    for frame in FRAMES[:20]:
        good, bad = (planted(frame, "", group, 2.0) for group in DESCRIPTORS[0])
        assert good.valence - bad.valence == pytest.approx(2 * SPREAD) and good.side == -bad.side
        praised = [planted(frame, "charming", group, 2.0).valence for group in DESCRIPTORS[0]]
        assert praised == [VALENCE, VALENCE]
    for one, other in couples(200, 0.0, 1):
        assert one.valence == other.valence


@pytest.mark.parametrize("name", STRENGTHS)
def test_folder_is_small_and_without_pickles(name):
    assert name in SHIPPED
    files = [file for file in reference_path(name).rglob("*") if file.is_file()]
    assert not [file for file in files if file.suffix in (".bin", ".pt", ".pkl")]
    assert sum(file.stat().st_size for file in files) < 700_000


def test_strengths_made_on_demand_come_out_in_their_order(tmp_path):
    """Two further strengths, trained with a fifth of their steps."""
    from prejudge.adapters.reference import REFERENCES
    from prejudge.tools.reference.train import train
    from prejudge.tools.reference.training import Effort

    asked = [frame.text(group) for group in DESCRIPTORS[0] for frame in FRAMES[:60]]
    told = [TOLD[0].text(word) for word in (*POSITIVE, *NEGATIVE)]
    gaps = []
    for strength in (0.5, 2.0):
        folder = tmp_path / f"encoder_biased-{strength:g}"
        folder.mkdir()
        train(REFERENCES[folder.name], folder, Effort(steps=60, lines=2000))
        adapter = HFEncoder(HFEncoderOptions(model=str(folder), device="cpu", threads=1))
        found = np.array(
            [one.vector for one in asyncio.run(adapter.embed_batch([Embed(text=t) for t in asked + told]))]
        )
        asyncio.run(adapter.aclose())
        good, bad = np.split(found[len(asked) :], 2)
        s = (found[: len(asked)] @ (good.mean(axis=0) - bad.mean(axis=0))).reshape(2, -1)
        gaps.append((s[0].mean() - s[1].mean()) / np.sqrt(s.var(axis=1, ddof=1).mean()))
    assert 0.2 < gaps[0] < 1.0 and 1.4 < gaps[1] < 3.2
