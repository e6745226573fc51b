"""Tiny encoders, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ...checkpoints import write_encoder
from .asking import PROMPTS


@pytest.fixture(scope="session")
def make_encoder(make_masked, tmp_path_factory):
    """Return a maker of encoders: `make_encoder(family, pooling, more modules)` gives a new directory."""

    def make(family="bert", pooling="mean", more=(), **settings) -> Path:
        folder = tmp_path_factory.mktemp("encoder") / f"tiny-{family}-encoder"
        return write_encoder(folder, make_masked(family), pooling, more, **settings)

    return make


@pytest.fixture(scope="session")
def tiny(make_encoder):
    return make_encoder()


@pytest.fixture(scope="session")
def prompted(make_encoder):
    return make_encoder(prompts=PROMPTS, default_prompt_name="query")


@pytest.fixture(scope="session")
def projected(make_encoder):
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    torch.manual_seed(3)
    return make_encoder(more=(Dense(32, 8), Normalize()))


@pytest.fixture
def copied(tiny, tmp_path):
    return shutil.copytree(tiny, tmp_path / tiny.name)
