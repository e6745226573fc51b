"""Train with the Trainer of sentence-transformers: batches of whole contexts, early stopping, the best epoch kept.

Its checkpoints make an interrupted training resumable. The encoder before training counts as epoch 0.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
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
from tqdm import tqdm
from transformers import PrinterCallback, ProgressCallback, TrainerCallback, TrainerState

from ...core.contracts.errors import DataError
from ..hf.encoder.files import find_encoder
from ..hf.encoder.model import Encoder, load_encoder
from ..shared.torch import quiet_loading
from .data import Corpus, Ints
from .delta_sim import delta, pair_sums
from .encoder import embed
from .losses import ContrastiveLoss
from .settings import Epoch, Recipe, TrainSettings
from .splits import Parts, pack

STATE = "trainer_state.json"
CHECKPOINT_CARD = Path(__file__).with_name("checkpoint.md.jinja")


class TrainingJob(NamedTuple):
    """An encoder, its loss and its data."""

    encoder: Encoder
    """`fit` leaves the best weights in its model."""
    loss: Any
    train: Dataset
    tuning: Dataset | SentenceEvaluator
    """Data for the criterion `loss`, an evaluator for any other."""
    folder: Path
    """For checkpoints."""
    arguments: Mapping[str, Any] = {}
    """More arguments of the Trainer, such as learning rates by name of parameter."""


class Fitted(NamedTuple):
    """The history of a training, and its best epoch."""

    history: list[Epoch]
    best: int
    recorded: dict[str, str]
    """Versions and settings that the Trainer recorded for the model card."""


def train(
    encoder: Encoder, data: tuple[Corpus, Parts], settings: TrainSettings, folder: Path, quiet: bool = True
) -> Fitted:
    """Train an encoder with one loss, and leave the weights of its best epoch in it; `folder` is for checkpoints.

    Raises:
        DataError: the training part has no pair of a kind, or the loss is not a finite number.
    """
    corpus, parts = data
    _, positive, _, negative = pair_sums(np.ones((len(parts.train), 1)), corpus, parts.train).sum(0)
    if not positive or not negative:
        problem = "the training part has no pair of one type, or none of both"
        raise DataError(f"{problem}. Add sentences to the contexts.", code="training.no-pairs")
    by_loss = settings.criterion == "loss"
    job = TrainingJob(
        encoder=encoder,
        loss=ContrastiveLoss(encoder.model, settings.loss, settings.buckets),
        train=rows_of(corpus, parts.train),
        tuning=rows_of(corpus, parts.tuning) if by_loss else DeltaSimEvaluator(encoder, corpus, parts.tuning),
        folder=folder,
        arguments={"batch_sampler": partial(ContextBatches, size=settings.batch)},
    )
    return fit(job, settings, quiet)


def fit(job: TrainingJob, recipe: Recipe, quiet: bool = True) -> Fitted:
    """Train until the last epoch, or until `patience` epochs brought no better one; resume from a checkpoint."""
    model, card, by_data = job.encoder.model, job.encoder.model.model_card_data, isinstance(job.tuning, Dataset)
    # Checkpoints get a card without a look at the hub and without sentences as examples.
    card.local_files_only, card.widget, card.template_path = True, [{"text": ""}], CHECKPOINT_CARD
    given = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    checkpoint = last_checkpoint(job.folder)
    trainer = SentenceTransformerTrainer(
        model=model,
        args=_arguments(job, recipe, checkpoint is None),
        train_dataset=job.train,
        eval_dataset=job.tuning if by_data else None,
        evaluator=None if by_data else job.tuning,
        loss=job.loss,
        callbacks=[Selection(recipe, quiet), *([Bar()] if not quiet and sys.stderr.isatty() else [])],
    )
    trainer.remove_callback(PrinterCallback)
    state = TrainerState() if checkpoint is None else TrainerState.load_from_json(str(checkpoint / STATE))
    if not is_over(read_history(state, recipe), recipe):
        with quiet_loading():
            trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        # Ends mixed precision: all later vectors are float32.
        trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
        state = trainer.state
    history = read_history(state, recipe)
    best = best_of(history, recipe)
    model.load_state_dict(_weights(job.folder, best) if best.epoch else given)
    model.eval()
    return Fitted(
        history, best.epoch, {k: f"{v}" for k, v in (card.version | card.non_default_hyperparameters).items()}
    )


def rows_of(corpus: Corpus, rows: Ints) -> Dataset:
    """Return some sentences as the Trainer reads them; a label is twice the context, plus 1 for a stereotype."""
    return Dataset.from_dict({"sentence": corpus.texts[rows].tolist(), "label": corpus.labels[rows].tolist()})


def read_history(state: TrainerState, recipe: Recipe) -> list[Epoch]:
    """Return the epochs that the Trainer logged."""
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
    return max(history, key=lambda epoch: recipe.score(epoch.tuning))


def is_over(history: Sequence[Epoch], recipe: Recipe) -> bool:
    """Return whether the last epoch is reached, or the best is `patience` epochs ago."""
    if not history:
        return False
    last = history[-1].epoch
    return last >= recipe.epochs or last - best_of(history, recipe).epoch >= recipe.patience


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint; the Trainer writes its state last."""
    there = [path.parent for path in folder.glob(f"checkpoint-*/{STATE}")]
    return max(there, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


class ContextBatches(DefaultBatchSampler):  # type: ignore[misc]
    """Batches of whole contexts in random order.

    GROUP_BY_LABEL of sentence-transformers draws two sentences of each label in turn, which divides contexts.
    """

    def __init__(self, dataset: Dataset, *, size: int, **given: Any) -> None:
        super().__init__(dataset, **given)
        self.contexts, self.size = np.asarray(dataset["label"]) // 2, size
        # Accelerate, which deals batches to processes, drops those that do not have the size named here.
        self.batch_size = None

    def __iter__(self) -> Iterator[list[int]]:
        processes = int(os.environ.get("WORLD_SIZE", "1"))
        yield from pack(self.contexts, self.size, np.random.default_rng([self.seed, self.epoch]), processes)

    def __len__(self) -> int:
        return len(list(iter(self)))


class DeltaSimEvaluator(SentenceEvaluator):  # type: ignore[misc]
    """Delta-sim of some sentences, all categories pooled: with its sign, and as an absolute value."""

    def __init__(self, encoder: Encoder, corpus: Corpus, rows: Ints) -> None:
        super().__init__()
        self.primary_metric = "delta_sim"
        self.encoder, self.corpus, self.rows = encoder, corpus, rows

    def __call__(self, model: Any, output_path: Any = None, epoch: float = -1, steps: int = -1) -> dict[str, float]:
        """Return both; NaN where there are no pairs of a kind."""
        vectors = embed(self.encoder._replace(model=model), self.corpus.texts[self.rows])
        found = delta(pair_sums(vectors, self.corpus, self.rows), resamples=0).signed
        # The absolute value would also reward an encoder for sentences of both types being the more similar ones.
        value = math.nan if found is None else found
        return {"delta_sim": value, "absolute_delta_sim": abs(value)}


class Bar(ProgressCallback):  # type: ignore[misc]
    """The Trainer's progress bar without its logs, which would stand among the results."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Write nothing: `Selection` reports each epoch."""


class Selection(TrainerCallback):  # type: ignore[misc]
    """Stop early where the model before training counts as an epoch, which the Trainer's own callback cannot."""

    def __init__(self, recipe: Recipe, quiet: bool) -> None:
        self.recipe, self.quiet = recipe, quiet

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Refuse a loss that is not a finite number, and report the criterion."""
        if not math.isfinite(loss := logs.get("loss", 0.0)):
            problem = f"training diverged: the loss is {loss}"
            raise DataError(f"{problem}. Lower --learning-rate, or raise --temperature.", code="training.diverged")
        if not self.quiet and (name := f"eval_{self.recipe.criterion}") in logs:
            epoch = f"epoch {round(logs['epoch'])}/{self.recipe.epochs}"
            tqdm.write(f"  {epoch}: tuning {self.recipe.criterion} {logs[name]:.4f}", file=sys.stderr)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Compare the epoch with those before it."""
        history = read_history(state, self.recipe)
        if not state.global_step:
            state.best_metric = history[0].tuning
        if is_over(history, self.recipe):
            control.should_training_stop = True


def _arguments(job: TrainingJob, recipe: Recipe, fresh: bool) -> SentenceTransformerTrainingArguments:
    on_cpu = job.encoder.device == "cpu"
    own = {"eval_on_start": fresh, **job.arguments}
    return SentenceTransformerTrainingArguments(
        output_dir=str(job.folder.resolve()),
        seed=recipe.seed,
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch,
        per_device_eval_batch_size=recipe.batch,
        prompts=job.encoder.prompt or None,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
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
        metric_for_best_model=f"eval_{recipe.criterion}",
        greater_is_better=recipe.criterion != "loss",
        report_to="none",
        disable_tqdm=True,
        **own,
    )


def _weights(folder: Path, best: Epoch) -> Any:
    checkpoint = folder / f"checkpoint-{best.epoch * best.steps}"
    return load_encoder(find_encoder(str(checkpoint)), "float32", "cpu", None).model.state_dict()
