"""Tiny pipelines, made once."""

from __future__ import annotations

import shutil

import pytest

from ..diffusion_files import write_pipeline


@pytest.fixture(scope="session")
def make_pipeline(tmp_path_factory):
    """Return a checkpoint of a tiny Stable Diffusion by its checker's verdict; do not write into it."""
    made = {}

    def make(verdict=None):
        if verdict not in made:
            made[verdict] = write_pipeline(tmp_path_factory.mktemp("diffusion"), verdict)
        return made[verdict]

    return make


@pytest.fixture
def tiny(make_pipeline):
    return make_pipeline()


@pytest.fixture
def copied(tiny, tmp_path):
    return shutil.copytree(tiny, tmp_path / "broken")
