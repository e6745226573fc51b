"""A classifier of two layers on an encoder: width, half of it, one (384-192-1; Santhosh et al. 2025).

`frozen` is scikit-learn's MLPClassifier on fixed vectors; `unfrozen` trains the encoder with the layers, by the Trainer
of sentence-transformers. Both stop early by the loss of the tuning part.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from ..hf.encoder.model import Encoder
from .data import Bools, Corpus, Floats, Ints
from .delta_sim import Ends, draw_contexts
from .encoder import embed
from .settings import Criterion, Recipe
from .splits import Parts, SplitBy

Kind = Literal["frozen", "unfrozen"]

Start = Literal["given", "trained"]


class HeadSettings(Recipe, frozen=True, kw_only=True):
    """How classifiers are trained; `learning_rate` is that of the encoder under them."""

    seeds: int = 5
    """Trainings, which differ in their first weights and the order of sentences, not in the split."""
    head_rate: float = 1e-3
    epochs: int = 100
    patience: int = 5
    criterion: Criterion = "loss"
    batch: int = 64


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
    """The scores of the classifiers of one kind on one encoder."""

    split: SplitBy
    encoder: Start
    trained: str
    """The training whose split is used, and whose encoder where that is `trained`."""
    kind: Kind
    settings: HeadSettings
    rows: tuple[F1, ...]


class HeadData(NamedTuple):
    """The encoder under a classifier, and its sentences."""

    corpus: Corpus
    parts: Parts
    open_encoder: Callable[[], Encoder]
    """Called once, or once per seed if the encoder is trained too."""
    folder: Path
    """For checkpoints."""


def predictions(kind: Kind, data: HeadData, settings: HeadSettings) -> Bools:
    """Train one classifier per seed; return which validation sentences each predicts as stereotypes: [seeds, rows]."""
    seeds = range(settings.seeds)
    if kind == "unfrozen":
        return np.array([_train_unfrozen(data, settings, seed) for seed in seeds])
    vectors = embed(data.open_encoder(), data.corpus.texts)
    return np.array([_train_frozen(vectors, data, settings, seed) for seed in seeds])


def macro_f1(predicted: Bools, corpus: Corpus, rows: Ints) -> list[F1]:
    """Return macro F1 overall and by category.

    Args:
        predicted: Which rows each seed predicts as stereotypes: [seeds, rows].
        corpus: All sentences.
        rows: The held-out ones.
    """
    parts = {name: corpus.category[rows] == index for index, name in enumerate(corpus.categories)}
    parts = {"overall": np.ones(len(rows), dtype=bool), **parts}
    return [_f1(name, predicted[:, own], corpus, rows[own]) for name, own in parts.items()]


def _f1(name: str, predicted: Bools, corpus: Corpus, rows: Ints) -> F1:
    from sklearn.metrics import f1_score

    if not len(rows):
        return F1(name, None, None, None, None, 0)
    truth = corpus.stereotype[rows]
    values = np.array([f1_score(truth, one, average="macro") for one in predicted])
    low, high = _interval(predicted, truth, np.unique(corpus.context[rows], return_inverse=True)[1])
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return F1(name, float(values.mean()), low, high, deviation, len(rows))


def _interval(predicted: Bools, truth: Bools, context: Ints) -> Ends:
    """Resample contexts; f1_score of scikit-learn, one resample at a time, would take minutes."""
    contexts = int(context.max()) + 1
    if contexts < 2:
        return None, None
    counts = np.zeros((len(predicted), contexts, 2, 2))
    for seed, one in enumerate(predicted):
        np.add.at(counts[seed], (context, truth.astype(int), one.astype(int)), 1)
    tables = np.einsum("rc,scij->rsij", draw_contexts(contexts), counts)
    right, present = np.diagonal(tables, axis1=-2, axis2=-1), tables.sum(-1) + tables.sum(-2)
    each = np.divide(2 * right, present, out=np.zeros_like(present), where=present > 0)
    # A type that does not occur is left out.
    low, high = np.quantile((each.sum(-1) / (present > 0).sum(-1)).mean(1), [0.025, 0.975])
    return float(low), float(high)


def _train_frozen(vectors: Floats, data: HeadData, settings: HeadSettings, seed: int) -> Bools:
    """Stop by the tuning part: MLPClassifier's own early stopping holds out sentences that trained the encoder."""
    from sklearn.metrics import log_loss
    from sklearn.neural_network import MLPClassifier

    parts, truth = data.parts, data.corpus.stereotype.astype(int)
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


def _train_unfrozen(data: HeadData, settings: HeadSettings, seed: int) -> Bools:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    from .losses import TypeLoss
    from .training import TrainingJob, fit, rows_of

    encoder = data.open_encoder()
    width = encoder.model.get_embedding_dimension()
    half = max(1, width // 2)
    torch.manual_seed(seed)
    layers = [
        Dense(width, half, activation_function=torch.nn.ReLU()),
        Dense(half, 1, activation_function=torch.nn.Identity()),
    ]
    whole = encoder._replace(model=SentenceTransformer(modules=[*encoder.model, *layers], device=encoder.device))
    of_head = rf"^model\.({len(encoder.model)}|{len(encoder.model) + 1})\."
    job = TrainingJob(
        encoder=whole,
        loss=TypeLoss(whole.model),
        train=rows_of(data.corpus, data.parts.train),
        tuning=rows_of(data.corpus, data.parts.tuning),
        folder=data.folder / f"seed-{seed}",
        # Before training a head has random weights, so that it is no epoch 0.
        arguments={"learning_rate_mapping": {of_head: settings.head_rate}, "eval_on_start": False},
    )
    fit(job, msgspec.structs.replace(settings, seed=seed))
    shutil.rmtree(job.folder, ignore_errors=True)
    return np.asarray(embed(whole, data.corpus.texts[data.parts.validation])[:, 0] > 0)
