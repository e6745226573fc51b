"""Train with the Trainer of sentence-transformers: batches of whole contexts, early stopping, the best epoch kept.

Its checkpoints make an interrupted training resumable.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import (
    DefaultBatchSampler,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from transformers import PrinterCallback, TrainerCallback

from ...core.contracts.errors import DataError
from ..hf.encoder.model import Encoder
from ..shared.torch import quiet_loading
from .data import Corpus, Ints, Parts
from .encoder import embed
from .losses import ContrastiveLoss, contrastive_loss
from .measures import difference, pair_sums
from .settings import Criterion, Recipe

STATE = "trainer_state.json"
Say = Callable[[str], None]


class Epoch(NamedTuple):
    """One epoch of a training."""

    epoch: int
    train: float
    """Mean loss of the steps."""
    loss: float
    """Loss of the tuning part, mean over contexts."""
    delta_sim: float
    """Of the tuning part, with its sign."""
    sums: list[list[float]]
    """Pair sums of the tuning part's contexts: [contexts, 4]."""


class Fitted(NamedTuple):
    """The history of a training."""

    epochs: list[Epoch]
    best: int
    """The epoch whose weights are kept."""
    recorded: dict[str, str]
    """Versions and settings that the Trainer recorded for the model card."""


def train(
    encoder: Encoder, corpus: Corpus, parts: Parts, recipe: Recipe, folder: Path, say: Say | None = None
) -> Fitted:
    """Train an encoder, and leave the weights of its best epoch in it; `folder` is for checkpoints.

    Raises:
        DataError: the training or tuning part has no pair of a kind, or the loss is not a finite number.
    """
    for name, rows in (("training", parts.train), ("tuning", parts.tuning)):
        if np.isnan(difference(pair_sums(np.ones((len(rows), 1)), corpus, rows).sum(0))):
            problem = f"the {name} part has no pair of one type, or none of both"
            raise DataError(f"{problem}. Add sentences to the contexts.", code="training.no-pairs", part=name)
    evaluator = TypeEvaluator(encoder, corpus, parts.tuning, recipe)
    loss = ContrastiveLoss(encoder.model, recipe.loss, recipe.value)
    batches = partial(ContextBatches, size=recipe.batch, reshuffle=recipe.reshuffle)
    log, recorded = fit(encoder, loss, rows_of(corpus, parts.train), evaluator, recipe, folder, say, batches)
    losses = {one["step"]: one["loss"] for one in log if "loss" in one}
    epochs = [
        Epoch(number, losses[one["step"]], *(one[f"eval_{name}"] for name in Epoch._fields[2:]))
        for number, one in enumerate((one for one in log if "eval_sums" in one), 1)
    ]
    best = max(epochs, key=lambda epoch: rank(recipe.best, epoch._asdict()))
    return Fitted(epochs, best.epoch, recorded)


def fit(
    encoder: Encoder,
    loss: Any,
    data: Dataset,
    evaluator: SentenceEvaluator,
    recipe: Recipe,
    folder: Path,
    say: Say | None = None,
    batches: Any = None,
    **more: Any,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Train until the last epoch or until patience ends, leave the best weights, and return the Trainer's log.

    `more` are further arguments of the Trainer, such as learning rates by name of parameter.
    """
    model, card, on_cpu = encoder.model, encoder.model.model_card_data, encoder.device == "cpu"
    # Checkpoints get a card without a look at the hub and without sentences as examples.
    card.local_files_only, card.widget = True, [{"text": ""}]
    checkpoint = last_checkpoint(folder)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder.resolve()),
        seed=recipe.seed,
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch,
        prompts=encoder.prompt or None,
        learning_rate=recipe.learning_rate,
        weight_decay=0.01,
        lr_scheduler_type="constant_with_warmup" if recipe.schedule == "constant" else recipe.schedule,
        warmup_steps=recipe.warmup,
        # The paper clips no gradients.
        max_grad_norm=0.0,
        bf16=recipe.precision == "bfloat16",
        fp16=recipe.precision == "float16",
        use_cpu=on_cpu,
        dataloader_pin_memory=not on_cpu,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        logging_nan_inf_filter=False,
        # Keeps the last checkpoint, to resume, and the best.
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model=f"eval_{recipe.best}",
        greater_is_better=recipe.best != "loss",
        report_to="none",
        disable_tqdm=True,
        **({"batch_sampler": batches} if batches else {}),
        **more,
    )
    watch = Watch(recipe, say or (lambda text: None))
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=data, evaluator=evaluator, loss=loss, callbacks=[watch]
    )
    trainer.remove_callback(PrinterCallback)
    with quiet_loading():
        trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
    # Ends mixed precision: all later vectors are float32.
    trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    model.eval()
    recorded = card.version | card.non_default_hyperparameters
    return trainer.state.log_history, {name: f"{value}" for name, value in recorded.items()}


def rows_of(corpus: Corpus, rows: Ints) -> Dataset:
    """Return some sentences as the Trainer reads them; a label is twice the context, plus 1 for a stereotype."""
    return Dataset.from_dict({"sentence": corpus.texts[rows].tolist(), "label": corpus.labels[rows].tolist()})


def rank(criterion: Criterion, values: Mapping[str, Any]) -> float:
    """Return a number that is greater for a better value of the criterion."""
    value = float(values["loss" if criterion == "loss" else "delta_sim"])
    return {"loss": -value, "delta_sim": value, "absolute_delta_sim": abs(value)}[criterion]


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint; the Trainer writes its state last."""
    there = [path.parent for path in folder.glob(f"checkpoint-*/{STATE}")]
    return max(there, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


class ContextBatches(DefaultBatchSampler):  # type: ignore[misc]
    """Batches of whole contexts, as many in each, in random order.

    GROUP_BY_LABEL of sentence-transformers draws two sentences of each label in turn, which divides contexts. Every
    epoch has the same number of batches, a multiple of the processes. A context with one sentence has no pair.
    """

    def __init__(self, dataset: Dataset, *, size: int, reshuffle: bool = True, **given: Any) -> None:
        super().__init__(dataset, **given)
        contexts = np.asarray(dataset["label"]) // 2
        known, sizes = np.unique(contexts, return_counts=True)
        self.rows = {int(one): np.flatnonzero(contexts == one).tolist() for one in known[sizes > 1]}
        processes = int(os.environ.get("WORLD_SIZE", "1"))
        wanted = processes * math.ceil(sum(map(len, self.rows.values())) / size / processes)
        self.count, self.reshuffle = min(wanted, len(self.rows)), reshuffle
        # Accelerate, which deals batches to processes, drops those that do not have the size named here.
        self.batch_size = None

    def __iter__(self) -> Iterator[list[int]]:
        order = list(self.rows)
        random.Random(f"{self.seed}/{self.epoch}" if self.reshuffle else self.seed).shuffle(order)
        for batch in np.array_split(order, self.count):
            yield [row for context in batch for row in self.rows[int(context)]]

    def __len__(self) -> int:
        return self.count


class TypeEvaluator(SentenceEvaluator):  # type: ignore[misc]
    """Loss and delta-sim of some sentences, all categories pooled, and their pair sums by context."""

    def __init__(self, encoder: Encoder, corpus: Corpus, rows: Ints, recipe: Recipe) -> None:
        super().__init__()
        self.primary_metric = "delta_sim"
        self.encoder, self.corpus, self.rows, self.recipe = encoder, corpus, rows, recipe

    def __call__(self, model: Any, output_path: Any = None, epoch: float = -1, steps: int = -1) -> dict[str, Any]:
        """Return the values."""
        corpus, rows, recipe = self.corpus, self.rows, self.recipe
        vectors = embed(self.encoder._replace(model=model), corpus.texts[rows])
        sums, wording = pair_sums(vectors, corpus, rows), torch.from_numpy(corpus.wording[rows])
        labels, equal = torch.from_numpy(corpus.labels[rows]), wording[:, None] == wording[None]
        loss = contrastive_loss(torch.from_numpy(vectors), labels, equal, recipe.loss, recipe.value)
        signed = float(difference(sums.sum(0)))
        found = {"loss": float(loss), "delta_sim": signed, "absolute_delta_sim": abs(signed)}
        return {**found, "sums": sums[np.unique(corpus.context[rows])].tolist()}


class Watch(TrainerCallback):  # type: ignore[misc]
    """Stop early by another value than the best epoch is chosen by, which the Trainer's own callback cannot."""

    def __init__(self, recipe: Recipe, say: Say) -> None:
        self.recipe, self.say = recipe, say

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Refuse a loss that is not a finite number."""
        if not math.isfinite(loss := logs.get("loss", 0.0)):
            problem = f"training diverged: the loss is {loss}"
            raise DataError(f"{problem}. Lower --learning-rate, or raise --temperature.", code="training.diverged")

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        """Report the epoch, and compare it with those before it."""
        values = ", ".join(f"{name} {metrics[f'eval_{name}']:.4f}" for name in ("loss", self.recipe.best))
        self.say(f"  epoch {round(state.epoch)}/{self.recipe.epochs}: tuning {values}")
        name, sign = f"eval_{self.recipe.stop}", -1 if self.recipe.stop == "loss" else 1
        found = [sign * log[name] for log in state.log_history if name in log]
        if len(found) - 1 - int(np.argmax(found)) >= self.recipe.patience:
            control.should_training_stop = True
