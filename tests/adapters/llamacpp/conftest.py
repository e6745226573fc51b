"""Tiny GGUF files, made once."""

from __future__ import annotations

import pytest

from ..gguf_files import write_pair, write_sentencepiece
from .asking import Pair


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return write_pair(tmp_path_factory.mktemp("gguf"))


@pytest.fixture(scope="session")
def plain_pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return write_pair(tmp_path_factory.mktemp("gguf-plain"), template=None, add_bos=False)


@pytest.fixture(scope="session")
def spm(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return write_sentencepiece(tmp_path_factory.mktemp("gguf-spm"))
