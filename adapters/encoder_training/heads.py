"""A classifier of two layers on an encoder: width, half of it, one (384-192-1).

Source: Santhosh et al. (2025), Bias Detection System.

`frozen` is scikit-learn's MLPClassifier on fixed vectors; `unfrozen` trains the encoder with the layers, on the Trainer
of sentence-transformers. Both stop early on the loss of the tuning part.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from .data import Bools, Corpus, Floats, Ints
from .delta_sim import draw_contexts
from .settings import Recipe
from .splits import Parts, SplitBy

Kind = Literal["frozen", "unfrozen"]
Start = Literal["given", "trained"]


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


class Heads(msgspec.Struct, frozen=True, kw_only=True):
    """Which classifiers to train."""

    kinds: tuple[Kind, ...] = ()
    settings: HeadSettings = HeadSettings()


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


class Classified(msgspec.Struct, frozen=True):
    """What the classifiers of one kind on one encoder came to."""

    split: SplitBy
    encoder: Start
    trained: str
    """The training whose split is used, and whose encoder where that is `trained`."""
    kind: Kind
    settings: HeadSettings
    rows: tuple[F1, ...]


class Lectern(NamedTuple):
    """What classifiers learn from."""

    corpus: Corpus
    parts: Parts
    open_encoder: Callable[[], Any]
    """Loads the encoder as a `Trainee`; called once, or once per seed if it learns."""
    folder: Path
    """Where checkpoints are kept."""


def predictions(kind: Kind, lectern: Lectern, settings: HeadSettings) -> Bools:
    """Train one classifier per seed; return which validation sentences each takes for stereotypes: [seeds, rows]."""
    from .encoder import embed

    seeds = range(settings.seeds)
    if kind == "unfrozen":
        return np.array([_learn_together(lectern, settings, seed) for seed in seeds])
    vectors = embed(lectern.open_encoder(), np.arange(len(lectern.corpus.sentences)))
    return np.array([_learn_apart(vectors, lectern, settings, seed) for seed in seeds])


def macro_f1(taken: Bools, corpus: Corpus, rows: Ints) -> list[F1]:
    """Return macro F1 overall and by category.

    Args:
        taken: Which rows each seed takes for stereotypes: [seeds, rows].
        corpus: All sentences.
        rows: The held-out ones.
    """
    everything = np.ones(len(rows), dtype=bool)
    parts = {name: corpus.category[rows] == place for place, name in enumerate(corpus.categories)}
    return [_f1(name, taken[:, own], corpus, rows[own]) for name, own in {"overall": everything, **parts}.items()]


def _f1(name: str, taken: Bools, corpus: Corpus, rows: Ints) -> F1:
    from sklearn.metrics import f1_score

    if not len(rows):
        return F1(name, None, None, None, None, 0)
    truth = corpus.stereotype[rows]
    values = np.array([f1_score(truth, answers, average="macro") for answers in taken])
    low, high = _interval(taken, truth, np.unique(corpus.context[rows], return_inverse=True)[1])
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return F1(name, float(values.mean()), low, high, deviation, len(rows))


def _interval(taken: Bools, truth: Bools, context: Ints) -> tuple[float, float] | tuple[None, None]:
    """Resample contexts; scikit-learn's f1_score, one resample at a time, would take minutes."""
    contexts = int(context.max()) + 1
    if contexts < 2:
        return None, None
    counts = np.zeros((len(taken), contexts, 2, 2))
    for seed, answers in enumerate(taken):
        np.add.at(counts[seed], (context, truth.astype(int), answers.astype(int)), 1)
    tables = np.einsum("rc,scij->rsij", draw_contexts(contexts), counts)
    right, present = np.diagonal(tables, axis1=-2, axis2=-1), tables.sum(-1) + tables.sum(-2)
    each = np.divide(2 * right, present, out=np.zeros_like(present), where=present > 0)
    # A type that is nowhere is left out.
    values: Floats = (each.sum(-1) / (present > 0).sum(-1)).mean(1)
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _learn_apart(vectors: Floats, lectern: Lectern, settings: HeadSettings, seed: int) -> Bools:
    from sklearn.metrics import log_loss
    from sklearn.neural_network import MLPClassifier

    parts, truth = lectern.parts, lectern.corpus.stereotype.astype(int)
    head = MLPClassifier(
        hidden_layer_sizes=(max(1, vectors.shape[1] // 2),),
        alpha=0.0,
        batch_size=min(settings.batch, len(parts.train)),
        learning_rate_init=settings.head_rate,
        random_state=seed,
    )
    best, kept, since = float("inf"), head, 0
    for _ in range(settings.epochs):
        head.partial_fit(vectors[parts.train], truth[parts.train], classes=[0, 1])
        now = log_loss(truth[parts.tuning], head.predict_proba(vectors[parts.tuning]), labels=[0, 1])
        if now < best:
            best, kept, since = now, copy.deepcopy(head), 0
        elif (since := since + 1) >= settings.patience:
            break
    return np.asarray(kept.predict(vectors[parts.validation]) > 0)


def _learn_together(lectern: Lectern, settings: HeadSettings, seed: int) -> Bools:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    from .encoder import embed
    from .losses import TypeLoss
    from .training import Lesson, fit, rows_of

    corpus, parts = lectern.corpus, lectern.parts
    trainee = lectern.open_encoder()
    encoder, width = trainee.encoder.model, int(embed(trainee, np.arange(1)).shape[1])
    torch.manual_seed(seed)
    half = max(1, width // 2)
    layers = [
        Dense(width, half, activation_function=torch.nn.ReLU()),
        Dense(half, 1, activation_function=torch.nn.Identity()),
    ]
    model = SentenceTransformer(modules=[*encoder, *layers], device=trainee.encoder.device)
    recipe = Recipe(
        seed=seed,
        epochs=settings.epochs,
        patience=settings.patience,
        criterion="loss",
        batch=settings.batch,
        learning_rate=settings.encoder_rate,
    )
    lesson = Lesson(
        model=model,
        loss=TypeLoss(model),
        train=rows_of(corpus, parts.train),
        tuning=rows_of(corpus, parts.tuning),
        evaluator=None,
        folder=lectern.folder / f"seed-{seed}",
        rates={rf"^model\.({len(encoder)}|{len(encoder) + 1})\.": settings.head_rate},
        given_counts=False,
    )
    fit(lesson, recipe, trainee.encoder, None)
    whole = trainee._replace(encoder=trainee.encoder._replace(model=model))
    shutil.rmtree(lesson.folder, ignore_errors=True)
    return np.asarray(embed(whole, parts.validation)[:, 0] > 0)
