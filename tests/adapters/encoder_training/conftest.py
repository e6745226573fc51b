"""A small data set and a tiny encoder, made once."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from prejudge.adapters.encoder_training.data import read_corpus

from ..checkpoints import write_encoder, write_masked

PLACES = ("house", "school", "shop", "field", "train", "court")
WORDS = {"stereotype": ("poor", "late", "slow", "sad"), "anti_stereotype": ("rich", "early", "quick", "glad")}


def rows(category: int) -> list[str]:
    """Return CSV rows of six contexts, whose types differ by a word."""
    return [
        f"{context},They are {word} near the {place} {'again ' * category}now.,{kind}"
        for context, place in enumerate(PLACES)
        for kind, words in WORDS.items()
        for word in words
    ]


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> list[str]:
    """Return two files of 48 sentences each, categories `caste` and `gender`."""
    folder = tmp_path_factory.mktemp("data")
    made = []
    for place, name in enumerate(("caste", "gender")):
        path = folder / f"my set - {name}.csv"
        path.write_text("\n".join(["context_id,sentence,type", *rows(place)]) + "\n", encoding="utf-8")
        made.append(str(path))
    return made


@pytest.fixture(scope="session")
def corpus(files):
    return read_corpus(files)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """Return a sentence-transformers directory; do not write into it."""
    folder = tmp_path_factory.mktemp("tiny")
    return write_encoder(folder / "tiny-encoder", write_masked(folder / "tiny-bert"))


@pytest.fixture
def write(tmp_path):
    """Return a writer of CSV files: `write(lines)` gives the path."""
    number = itertools.count()

    def make(*lines: str) -> str:
        path = tmp_path / f"set - own{next(number)}.csv"
        path.write_text("\n".join(["context_id,sentence,type", *lines]) + "\n", encoding="utf-8")
        return str(path)

    return make
