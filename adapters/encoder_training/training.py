"""Train on the Trainer of sentence-transformers: batches of whole contexts, early stopping, the best epoch kept.

Its checkpoints make an interrupted training resumable. The model as it was given counts as epoch 0.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset
from sentence_transformers import (
    DefaultBatchSampler,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from transformers import PrinterCallback, ProgressCallback, TrainerCallback, TrainerState

from ...core.contracts.errors import DataError
from ..hf.encoder.files import find_encoder
from ..hf.encoder.model import Encoder, load_encoder
from ..shared.torch import quiet_loading
from .data import Corpus, Ints
from .delta_sim import delta, pair_sums
from .encoder import Trainee, embed
from .losses import ContrastiveLoss
from .settings import Epoch, Recipe, TrainSettings, rank
from .splits import Parts, pack

STATE = "trainer_state.json"
OWN_WORDS = (
    "batch_sampler",
    "prompts",
    "disable_tqdm",
    "logging_nan_inf_filter",
    "dataloader_pin_memory",
    "eval_on_start",
)
"""Settings of the Trainer that say nothing to a reader of the model card."""
CHECKPOINT_CARD = Path(__file__).with_name("checkpoint.md.jinja")
Tell = Callable[[str], None]


class Lesson(NamedTuple):
    """What is learned by which model."""

    model: Any
    """A SentenceTransformer; `fit` leaves the best weights in it."""
    loss: Any
    train: Dataset
    tuning: Dataset | None
    """For the criterion `loss`."""
    evaluator: SentenceEvaluator | None
    """For any other."""
    folder: Path
    """Where checkpoints are kept."""
    sampler: Any = "batch_sampler"
    rates: Mapping[str, float] = {}
    """Learning rates of parameters by a pattern of their names."""
    given_counts: bool = True
    """Whether the model as it was given is epoch 0; a head with random weights is none."""


class Fitted(NamedTuple):
    """What a training came to."""

    history: list[Epoch]
    best: int
    recorded: dict[str, str]
    """What the Trainer recorded for the model card."""


def train(
    trainee: Trainee, data: tuple[Corpus, Parts], settings: TrainSettings, folder: Path, tell: Tell | None
) -> Fitted:
    """Train an encoder with one loss, and leave the weights of its best epoch in it.

    Args:
        trainee: The encoder.
        data: All sentences and their parts.
        settings: How to train.
        folder: Where checkpoints are; those of an interrupted training are taken up.
        tell: Hears of each epoch; None for silence.

    Raises:
        DataError: the training part has no pair of a kind, or the loss is no number.
    """
    corpus, parts = data
    pairs = pair_sums(np.ones((len(parts.train), 1)), corpus, parts.train).sum(0)
    if not pairs[1] or not pairs[3]:
        raise DataError(
            "no batch has a pair of one type and a pair of both. Give contexts with more sentences.",
            code="training.no-pairs",
        )
    by_loss = settings.criterion == "loss"
    lesson = Lesson(
        model=trainee.encoder.model,
        loss=ContrastiveLoss(trainee.encoder.model, settings.loss, settings.buckets),
        train=rows_of(corpus, parts.train),
        tuning=rows_of(corpus, parts.tuning) if by_loss else None,
        evaluator=None if by_loss else DeltaSimEvaluator(trainee, corpus, parts.tuning),
        folder=folder,
        sampler=partial(ContextBatches, size=settings.batch, epochs=settings.epochs),
    )
    return fit(lesson, settings, trainee.encoder, tell)


def fit(lesson: Lesson, recipe: Recipe, encoder: Encoder, tell: Tell | None) -> Fitted:
    """Train until the epochs are over or `patience` of them brought nothing; leave the best weights in the model.

    A checkpoint in the lesson's folder is taken up.
    """
    card = lesson.model.model_card_data
    # The cards of checkpoints are written offline, and quote no sentence as an example.
    card.local_files_only, card.widget, card.template_path = True, [{"text": ""}], CHECKPOINT_CARD
    given = {name: value.detach().cpu().clone() for name, value in lesson.model.state_dict().items()}
    checkpoint = last_checkpoint(lesson.folder)
    trainer = SentenceTransformerTrainer(
        model=lesson.model,
        args=_arguments(lesson, recipe, encoder, checkpoint is None),
        train_dataset=lesson.train,
        eval_dataset=lesson.tuning,
        evaluator=lesson.evaluator,
        loss=lesson.loss,
        callbacks=[Selection(recipe, tell), *([Bars()] if tell and sys.stderr.isatty() else [])],
    )
    for own in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(own)
    state = TrainerState() if checkpoint is None else TrainerState.load_from_json(str(checkpoint / STATE))
    if checkpoint is not None and tell:
        tell(f"  resumed after epoch {round(state.epoch)}")
    if not is_over(read_history(state, recipe), recipe):
        with quiet_loading():
            trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        # Takes mixed precision off again: whoever asks the model next is answered in float32.
        trainer.accelerator.unwrap_model(lesson.model, keep_fp32_wrapper=False)
        state = trainer.state
    history = read_history(state, recipe)
    best = best_of(history, recipe)
    lesson.model.load_state_dict(_weights(lesson.folder, best) if best.epoch else given)
    lesson.model.eval()
    return Fitted(history, best.epoch, _recorded(card))


def rows_of(corpus: Corpus, rows: Ints) -> Dataset:
    """Return some sentences as the Trainer takes them; a label is twice the context, plus 1 for a stereotype."""
    return Dataset.from_dict({"sentence": [corpus.texts[row] for row in rows], "label": corpus.labels[rows].tolist()})


def read_history(state: TrainerState, recipe: Recipe) -> list[Epoch]:
    """Return what the epochs came to, from what the Trainer logged."""
    name = f"eval_{recipe.criterion}"
    losses = {log["step"]: log["loss"] for log in state.log_history if "loss" in log}
    history = []
    for log in state.log_history:
        if name in log:
            epoch, step, value = round(log["epoch"]), log["step"], log[name]
            tuning = None if math.isnan(value) else value
            history.append(Epoch(epoch, losses.get(step), tuning, step // epoch if epoch else 0))
    return history


def best_of(history: Sequence[Epoch], recipe: Recipe) -> Epoch:
    """Return the best epoch, the first of equal ones."""
    sign = 1 if recipe.greater_is_better else -1
    return max(history, key=lambda epoch: rank(None if epoch.tuning is None else sign * epoch.tuning))


def is_over(history: Sequence[Epoch], recipe: Recipe) -> bool:
    """Tell whether all epochs are over, or `patience` of them brought nothing."""
    if not history:
        return False
    last = history[-1].epoch
    return last >= recipe.epochs or last - best_of(history, recipe).epoch >= recipe.patience


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint that was written whole; its state is written last."""
    there = [path.parent for path in folder.glob(f"checkpoint-*/{STATE}")]
    return max(there, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


class ContextBatches(DefaultBatchSampler):  # type: ignore[misc]
    """Batches of whole contexts in random order; every epoch has as many, as the Trainer expects.

    GROUP_BY_LABEL of sentence-transformers draws two sentences of each label in turn, which would cut contexts.
    """

    def __init__(self, dataset: Dataset, *, size: int, epochs: int, **given: Any) -> None:
        super().__init__(dataset, **given)
        self.contexts, self.size, self.count = np.asarray(dataset["label"]) // 2, size, 1
        # Accelerate, dealing batches to several processes, drops those that are not of the size named here.
        self.batch_size = None
        most = max(len(self.plan(epoch)) for epoch in range(epochs))
        processes = int(os.environ.get("WORLD_SIZE", "1"))
        self.count = processes * math.ceil(most / processes)

    def plan(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch."""
        return pack(self.contexts, self.size, np.random.default_rng([self.seed, epoch]), self.count)

    def __iter__(self) -> Iterator[list[int]]:
        yield from self.plan(self.epoch)

    def __len__(self) -> int:
        return self.count


class DeltaSimEvaluator(SentenceEvaluator):  # type: ignore[misc]
    """Delta-sim of some sentences, all categories pooled: with its sign, and as an absolute value."""

    def __init__(self, trainee: Trainee, corpus: Corpus, rows: Ints) -> None:
        super().__init__()
        self.primary_metric = "delta_sim"
        self.trainee, self.corpus, self.rows = trainee, corpus, rows

    def __call__(self, model: Any, output_path: Any = None, epoch: float = -1, steps: int = -1) -> dict[str, float]:
        """Return the metrics; NaN where there are no pairs of a kind."""
        trainee = self.trainee._replace(encoder=self.trainee.encoder._replace(model=model))
        found = delta(pair_sums(embed(trainee, self.rows), self.corpus, self.rows), resamples=0).signed
        # Signed: the absolute value would also reward an encoder for putting opposed sentences together.
        value = math.nan if found is None else found
        return {"delta_sim": value, "absolute_delta_sim": abs(value)}


class Selection(TrainerCallback):  # type: ignore[misc]
    """Stop early, let the model as it was given count as epoch 0, and tell of each epoch."""

    def __init__(self, recipe: Recipe, tell: Tell | None) -> None:
        self.recipe, self.tell = recipe, tell

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Refuse a loss that is no number."""
        if not math.isfinite(loss := logs.get("loss", 0.0)):
            raise DataError(
                f"the loss is {loss}: training fell apart. Lower --learning-rate, or raise --temperature.",
                code="training.diverged",
            )

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Compare the epoch with those before it."""
        history = read_history(state, self.recipe)
        if not state.global_step:
            state.best_metric = history[0].tuning
        if self.tell:
            self.tell(_in_words(history[-1], self.recipe))
        if is_over(history, self.recipe):
            control.should_training_stop = True


class Bars(ProgressCallback):  # type: ignore[misc]
    """The Trainer's bar without its raw logs."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Say nothing: `Selection` tells of each epoch."""


def _arguments(lesson: Lesson, recipe: Recipe, encoder: Encoder, fresh: bool) -> SentenceTransformerTrainingArguments:
    return SentenceTransformerTrainingArguments(
        output_dir=str(lesson.folder.resolve()),
        seed=recipe.seed,
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch,
        per_device_eval_batch_size=recipe.batch,
        batch_sampler=lesson.sampler,
        prompts=encoder.prompt or None,
        learning_rate=recipe.learning_rate,
        learning_rate_mapping=dict(lesson.rates),
        weight_decay=recipe.weight_decay,
        lr_scheduler_type="constant_with_warmup" if recipe.schedule == "constant" else recipe.schedule,
        warmup_steps=recipe.warmup,
        # The paper clips no gradients.
        max_grad_norm=0.0,
        bf16=recipe.precision == "bfloat16",
        fp16=recipe.precision == "float16",
        use_cpu=encoder.device == "cpu",
        dataloader_pin_memory=encoder.device != "cpu",
        eval_on_start=fresh and lesson.given_counts,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        logging_nan_inf_filter=False,
        # Keeps the last checkpoint, to resume, and the best.
        save_total_limit=1,
        metric_for_best_model=f"eval_{recipe.criterion}",
        greater_is_better=recipe.greater_is_better,
        report_to="none",
        disable_tqdm=True,
    )


def _weights(folder: Path, best: Epoch) -> Any:
    checkpoint = folder / f"checkpoint-{best.epoch * best.steps}"
    return load_encoder(find_encoder(str(checkpoint)), "float32", "cpu", None).model.state_dict()


def _recorded(card: Any) -> dict[str, str]:
    chosen = {name: value for name, value in card.non_default_hyperparameters.items() if name not in OWN_WORDS}
    return {name: f"{value}" for name, value in {**card.version, **chosen}.items()}


def _in_words(epoch: Epoch, recipe: Recipe) -> str:
    criterion = recipe.criterion.replace("_", "-")
    tuning = f"tuning {criterion} " + ("-" if epoch.tuning is None else f"{epoch.tuning:.4f}")
    if epoch.epoch == 0:
        return f"  as given: {tuning}"
    return f"  epoch {epoch.epoch}/{recipe.epochs}: loss {'-' if epoch.loss is None else f'{epoch.loss:.4f}'}, {tuning}"
