"""A classifier of two layers on an encoder: width, half of it, one (384-192-1; Santhosh et al. 2025, Table 4).

`frozen` is scikit-learn's MLPClassifier on fixed vectors; `unfrozen` trains the encoder with the layers, by the Trainer
of sentence-transformers. Both stop early by sentences that are not reported.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from ..hf.encoder.model import Encoder
from .data import Bools, Corpus, Parts, cut
from .encoder import embed
from .measures import OVERALL
from .settings import Recipe

Kind = Literal["frozen", "unfrozen"]
HeadSplit = Literal["encoder", "context", "sentence"]
SEEN, UNSEEN = "seen", "unseen"
HEAD_RATE = 1e-3


class Heads(msgspec.Struct, frozen=True):
    """Macro F1 of the classifiers of one kind on one encoder."""

    kind: Kind
    encoder: Literal["vanilla", "contrastive"]
    split: HeadSplit
    """`encoder`: the parts of the encoder; else a split of its own for each seed."""
    scores: tuple[dict[str, float | None], ...] = ()
    """Of each seed: `overall`, by category, and of the sentences that contrastive training has `seen`, or not."""

    def values(self, name: str) -> list[float]:
        """Return the scores of the seeds, those that are missing left out."""
        return [value for one in self.scores if (value := one.get(name)) is not None]


def classify_types(
    load: Callable[[], Encoder], corpus: Corpus, heads: Heads, trained: Parts, seeds: int, recipe: Recipe, folder: Path
) -> Heads:
    """Train a classifier per seed, score its validation sentences, and return the classifiers with their scores.

    Args:
        load: Loads the encoder; called once, or once per seed if the encoder is trained too.
        corpus: All sentences.
        heads: Which classifiers.
        trained: The parts of the encoder's training.
        seeds: How many classifiers.
        recipe: How the unfrozen ones are trained.
        folder: For checkpoints.
    """
    vectors = embed(load(), corpus.texts) if heads.kind == "frozen" else np.empty((0, 0))
    scores = []
    for seed in range(seeds):
        parts = trained if heads.split == "encoder" else cut(corpus, heads.split, seed)
        rows = parts.validation
        if heads.kind == "frozen":
            head = _frozen(vectors.shape[1], seed).fit(vectors[parts.known], corpus.stereotype[parts.known])
            predicted = head.predict(vectors[rows])
        else:
            predicted = _train_unfrozen(load(), corpus, parts, msgspec.structs.replace(recipe, seed=seed), folder)
        # Of the untrained encoder too: the difference between the two is what the leak adds.
        scores.append(macro_f1(predicted, corpus, rows, np.isin(rows, trained.known)))
    return msgspec.structs.replace(heads, scores=tuple(scores))


def macro_f1(predicted: Bools, corpus: Corpus, rows: Any, seen: Bools) -> dict[str, float | None]:
    """Return macro F1 of held-out rows: overall, by category, and of those that the encoder has seen or not."""
    from sklearn.metrics import f1_score

    truth, parts = corpus.stereotype[rows], {OVERALL: np.ones(len(rows), dtype=bool), SEEN: seen, UNSEEN: ~seen}
    parts |= {name: corpus.category[rows] == index for index, name in enumerate(corpus.categories)}
    return {
        name: float(f1_score(truth[own], predicted[own], average="macro")) if own.any() else None
        for name, own in parts.items()
    }


def _frozen(width: int, seed: int) -> Any:
    """Return a classifier that stops by a tenth of its own training sentences."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        (max(1, width // 2),), early_stopping=True, n_iter_no_change=20, batch_size=16, random_state=seed
    )


def _train_unfrozen(encoder: Encoder, corpus: Corpus, parts: Parts, recipe: Recipe, folder: Path) -> Bools:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
    from sentence_transformers.sentence_transformer.modules import Dense
    from sklearn.metrics import log_loss

    from .losses import TypeLoss
    from .training import fit, rows_of

    width = encoder.model.get_embedding_dimension()
    half, relu, identity = max(1, width // 2), torch.nn.ReLU(), torch.nn.Identity()
    torch.manual_seed(recipe.seed)
    layers = [Dense(width, half, activation_function=relu), Dense(half, 1, activation_function=identity)]
    whole = encoder._replace(model=SentenceTransformer(modules=[*encoder.model, *layers], device=encoder.device))

    class LossEvaluator(SentenceEvaluator):  # type: ignore[misc]
        def __call__(self, model: Any, *_: Any, **__: Any) -> dict[str, float]:
            logits = embed(whole._replace(model=model), corpus.texts[parts.tuning])[:, 0]
            return {"loss": float(log_loss(corpus.stereotype[parts.tuning], 1 / (1 + np.exp(-logits)), labels=[0, 1]))}

    of_head = {rf"^model\.({len(encoder.model)}|{len(encoder.model) + 1})\.": HEAD_RATE}
    data = rows_of(corpus, parts.train)
    fit(whole, TypeLoss(whole.model), data, LossEvaluator(), recipe, folder, learning_rate_mapping=of_head)
    shutil.rmtree(folder, ignore_errors=True)
    return np.asarray(embed(whole, corpus.texts[parts.validation])[:, 0] > 0)
