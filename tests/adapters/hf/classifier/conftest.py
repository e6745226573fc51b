"""Tiny classifiers, made once."""

from __future__ import annotations

import shutil

import pytest

from .asking import TOXIC


@pytest.fixture(scope="session")
def nli(tiny_nli):
    return tiny_nli("bert")


@pytest.fixture(scope="session")
def toxic(make_classifier):
    return make_classifier(labels=TOXIC, problem_type="multi_label_classification")


@pytest.fixture
def copied(nli, tmp_path):
    return shutil.copytree(nli, tmp_path / nli.name)
