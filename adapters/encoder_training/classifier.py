"""A classifier of two layers on an encoder: width, half of it, one (384-192-1).

Source: Santhosh et al. (2025), Bias Detection System.

`frozen` trains the layers on fixed vectors; `unfrozen` trains the encoder with them. Both stop early on the tuning
part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import numpy as np

from .data import Bools, Corpus, Ints
from .model import Trainee, embed, forward
from .parts import Parts
from .similarity import RESAMPLES, Floats
from .state import copied

Kind = Literal["frozen", "unfrozen"]


class HeadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How classifiers are trained."""

    seeds: int = 5
    """Trainings, which differ in their first weights and the order of sentences; the split stays."""
    epochs: int = 100
    patience: int = 5
    """Epochs without a lower loss of the tuning part before it stops."""
    batch: int = 64
    head_rate: float = 1e-3
    encoder_rate: float = 5e-5


class F1(msgspec.Struct, frozen=True):
    """Macro F1 of held-out sentences of one category, or of all (`overall`)."""

    category: str
    value: float | None
    """Mean over seeds."""
    low: float | None
    """Lower end of the 95 % percentile interval, contexts resampled, seeds kept together."""
    high: float | None
    deviation: float | None
    """Standard deviation over seeds; None for one."""
    sentences: int


def predictions(
    kind: Kind, trainee: Callable[[], Trainee], data: tuple[Corpus, Parts], settings: HeadSettings
) -> Bools:
    """Train one classifier per seed; return which validation sentences each takes for stereotypes: [seeds, rows].

    Args:
        kind: Whether the encoder learns too.
        trainee: Loads the encoder; called once, or once per seed if it learns.
        data: All sentences and their parts.
        settings: How to train.
    """
    corpus, parts = data
    if kind == "frozen":
        vectors = embed(loaded := trainee(), np.arange(len(corpus.sentences)))
        fixed = _Fixed(vectors, loaded.encoder.device)
        return np.array([_fit(fixed, corpus, parts, settings, seed) for seed in range(settings.seeds)])
    return np.array([_fit(_Learning(trainee()), corpus, parts, settings, seed) for seed in range(settings.seeds)])


def macro_f1(taken: Bools, corpus: Corpus, rows: Ints) -> list[F1]:
    """Return macro F1 overall and by category.

    Args:
        taken: Which rows each seed takes for stereotypes: [seeds, rows].
        corpus: All sentences.
        rows: The held-out ones.
    """
    counts = np.zeros((len(taken), corpus.contexts, 2, 2))
    for seed, answers in enumerate(taken):
        np.add.at(counts[seed], (corpus.context[rows], corpus.stereotype[rows].astype(int), answers.astype(int)), 1)
    owner = np.zeros(corpus.contexts, dtype=np.int64)
    owner[corpus.context] = corpus.category
    held = np.flatnonzero(counts[0].sum((1, 2)) > 0)
    found = [_f1("overall", counts[:, held])]
    for place, name in enumerate(corpus.categories):
        found.append(_f1(name, counts[:, held[owner[held] == place]]))
    return found


def _f1(name: str, counts: Floats) -> F1:
    """Summarise counts [seeds, contexts, true, taken]."""
    seeds, contexts = counts.shape[:2]
    if not contexts:
        return F1(name, None, None, None, None, 0)
    values = _macro(counts.sum(1))
    low = high = None
    if contexts > 1:
        drawn = np.random.default_rng(0).multinomial(contexts, np.full(contexts, 1 / contexts), size=RESAMPLES)
        resampled = _macro(np.einsum("rc,scij->rsij", drawn, counts)).mean(1)
        low, high = (float(end) for end in np.quantile(resampled, [0.025, 0.975]))
    deviation = float(values.std(ddof=1)) if seeds > 1 else None
    return F1(name, float(values.mean()), low, high, deviation, int(counts[0].sum()))


def _macro(tables: Floats) -> Floats:
    """Return the mean F1 of both types: [...], from counts [..., true, taken]; a type that is nowhere is left out."""
    right = np.diagonal(tables, axis1=-2, axis2=-1)
    present = tables.sum(-1) + tables.sum(-2)
    each = np.divide(2 * right, present, out=np.zeros_like(present), where=present > 0)
    return np.asarray(each.sum(-1) / (present > 0).sum(-1))


class _Fixed:
    """Vectors that stay as they are."""

    def __init__(self, vectors: Floats, device: str) -> None:
        import torch

        self._vectors = torch.as_tensor(vectors, dtype=torch.float32, device=device)
        self.device, self.width = device, vectors.shape[1]
        self.module: Any = None

    def __call__(self, rows: Ints, training: bool) -> Any:
        return self._vectors[rows]


class _Learning:
    """Vectors of an encoder that learns."""

    def __init__(self, trainee: Trainee) -> None:
        self._trainee = trainee
        self.module = trainee.encoder.model
        self.device = trainee.encoder.device
        self.width = int(embed(trainee, np.arange(1)).shape[1])

    def __call__(self, rows: Ints, training: bool) -> Any:
        self.module.train(training)
        return forward(self._trainee, rows)


def _fit(vectors: _Fixed | _Learning, corpus: Corpus, parts: Parts, settings: HeadSettings, seed: int) -> Bools:
    import torch

    rng = np.random.default_rng([seed, 384])
    torch.manual_seed(int(rng.integers(2**31)))
    half = max(1, vectors.width // 2)
    head = torch.nn.Sequential(torch.nn.Linear(vectors.width, half), torch.nn.ReLU(), torch.nn.Linear(half, 1))
    head.to(vectors.device)
    groups = [{"params": head.parameters(), "lr": settings.head_rate}]
    if vectors.module is not None:
        groups.append({"params": vectors.module.parameters(), "lr": settings.encoder_rate})
    optimiser = torch.optim.AdamW(groups, foreach=False)
    truth = torch.as_tensor(corpus.stereotype, dtype=torch.float32, device=vectors.device)
    learned = [head] if vectors.module is None else [head, vectors.module]
    best, kept, since = float("inf"), [copied(module.state_dict()) for module in learned], 0
    for _ in range(settings.epochs):
        order = rng.permutation(parts.train)
        for start in range(0, len(order), settings.batch):
            rows = order[start : start + settings.batch]
            optimiser.zero_grad(set_to_none=True)
            _bce(head(vectors(rows, True))[:, 0], truth[rows]).backward()
            optimiser.step()
        if (now := _tuning_loss(head, vectors, truth, parts)) < best:
            best, kept, since = now, [copied(module.state_dict()) for module in learned], 0
        elif (since := since + 1) >= settings.patience:
            break
    for module, weights in zip(learned, kept, strict=True):
        module.load_state_dict(weights)
    return _taken(head, vectors, parts.validation)


def _bce(logits: Any, truth: Any) -> Any:
    import torch.nn.functional as functional

    return functional.binary_cross_entropy_with_logits(logits, truth)


def _tuning_loss(head: Any, vectors: _Fixed | _Learning, truth: Any, parts: Parts) -> float:
    import torch

    with torch.inference_mode():
        return float(_bce(_logits(head, vectors, parts.tuning), truth[parts.tuning]))


def _taken(head: Any, vectors: _Fixed | _Learning, rows: Ints) -> Bools:
    import torch

    with torch.inference_mode():
        taken: Bools = (_logits(head, vectors, rows) > 0).cpu().numpy()
    return taken


def _logits(head: Any, vectors: _Fixed | _Learning, rows: Ints) -> Any:
    import torch

    size = 256
    return torch.cat([head(vectors(rows[at : at + size], False))[:, 0] for at in range(0, len(rows), size)])
