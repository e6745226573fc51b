"""Tiny real models as fixtures, and short ways to ask them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.core.contracts.errors import ModelError
from prejudge.core.contracts.records import PseudoLikelihood, TokenScores
from prejudge.testing import ChaosServer

from .checkpoints import write_causal, write_classifier, write_masked
from .pool import POOL

Answers = list[TokenScores | ModelError]


@pytest.fixture(scope="session", autouse=True)
def pool() -> Iterator[None]:
    """Close the shared adapters in the end."""
    yield
    POOL.close()


@pytest.fixture(autouse=True)
def pooled(pool: None, request: pytest.FixtureRequest) -> None:
    """Let the test share adapters, or not."""
    POOL.begin(request.fixturenames)


@pytest.fixture(scope="session")
def make_masked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a maker of checkpoints: `make_masked(family, **configuration)` gives a new directory."""

    def make(family: str = "bert", **changes: Any) -> Path:
        return write_masked(tmp_path_factory.mktemp(family) / f"tiny-{family}", family, **changes)

    return make


@pytest.fixture(scope="session")
def tiny_masked(make_masked: Callable[..., Path]) -> Callable[[str], Path]:
    """Return a checkpoint by family, made once; do not write into it."""
    made: dict[str, Path] = {}

    def get(family: str) -> Path:
        if family not in made:
            made[family] = make_masked(family)
        return made[family]

    return get


@pytest.fixture(scope="session")
def tiny_bert(tiny_masked: Callable[[str], Path]) -> Path:
    """Return a tiny BERT's directory; do not write into it."""
    return tiny_masked("bert")


@pytest.fixture(scope="session")
def ask_masked() -> Callable[..., Answers]:
    """Return `ask(folder, requests, **options)`: answer on the CPU."""

    def ask(folder: Path, requests: Sequence[PseudoLikelihood], **options: Any) -> Answers:
        chosen = HFMaskedOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options})
        return POOL.ask(HFMasked, chosen, requests)

    return ask


@pytest.fixture(scope="session")
def make_classifier(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a maker of classifiers: `make_classifier(family, labels, **configuration)` gives a new directory."""

    def make(family: str = "bert", labels: Sequence[str] | None = None, **changes: Any) -> Path:
        folder = tmp_path_factory.mktemp(f"classifier-{family}") / f"tiny-{family}-classifier"
        return write_classifier(folder, family, labels, **changes)

    return make


@pytest.fixture(scope="session")
def tiny_nli(make_classifier: Callable[..., Path]) -> Callable[[str], Path]:
    """Return an NLI classifier by family, its labels in no usual order; do not write into it."""
    made: dict[str, Path] = {}

    def get(family: str) -> Path:
        if family not in made:
            labels = ("neutral", "contradiction", "entailment")
            made[family] = make_classifier(family, labels, max_position_embeddings=160)
        return made[family]

    return get


@pytest.fixture(scope="session")
def make_causal(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a maker of causal models: `make_causal(family, template=, bos=, **configuration)` gives a directory."""

    def make(family: str = "llama", **changes: Any) -> Path:
        return write_causal(tmp_path_factory.mktemp(f"causal-{family}") / f"tiny-{family}", family, **changes)

    return make


@pytest.fixture(scope="session")
def tiny_llama(make_causal: Callable[..., Path]) -> Path:
    """Return a tiny Llama's directory, with a chat template; do not write into it."""
    return make_causal()


@pytest.fixture(scope="session")
def ask_causal() -> Callable[..., list[Any]]:
    """Return `ask(folder, requests, **options)`: answer on the CPU."""
    from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions

    def ask(folder: Path, requests: Sequence[Any], **options: Any) -> list[Any]:
        chosen = HFCausalOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options})
        return POOL.ask(HFCausal, chosen, requests)

    return ask


@pytest.fixture(scope="session")
def _server() -> Iterator[ChaosServer]:
    with ChaosServer() as server:
        yield server


@pytest.fixture
def server(_server: ChaosServer) -> ChaosServer:
    """Return a server without a history that answers well."""
    _server.clear()
    return _server
