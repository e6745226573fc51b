"""Train one encoder with one loss: AdamW, whole contexts per batch, early stopping on the tuning part."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...core.contracts.errors import DataError
from .data import Corpus
from .losses import LossSettings, contrastive_loss, find_pairs
from .model import Trainee, embed, forward
from .parts import Parts, batches
from .progress import Progress
from .similarity import delta, pair_sums
from .state import Epoch, State, copied, load_state, save_state


class TrainSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to train; the defaults are the paper's, but for the number of epochs its grid varies."""

    loss: LossSettings
    seed: int = 0
    epochs: int = 30
    patience: int = 3
    """Epochs without a higher delta-sim before it stops."""
    batch: int = 256
    """Sentences per step, as many whole contexts as fit."""
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    buckets: bool = True
    """Pad within passes of like length only."""


class Task(msgspec.Struct, frozen=True, eq=False):
    """What is trained on what."""

    corpus: Corpus
    parts: Parts
    trainee: Trainee
    folder: Path
    """Where the state between epochs is kept."""


def train(task: Task, settings: TrainSettings, progress: Progress) -> State:
    """Train until the epochs are over or `patience` of them brought nothing; leave the best weights in the model.

    Takes up a state that `task.folder` holds. The encoder as it was given counts as epoch 0.

    Raises:
        DataError: no batch has a pair of each kind, or the loss is no number.
    """
    import torch

    model = task.trainee.encoder.model
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, foreach=False
    )
    if (found := load_state(task.folder, settings.seed, model, optimiser)) is None:
        best = copied(model.state_dict())
        state = State(settings.seed, [Epoch(0, None, _tuning(task))], 0)
        progress.epoch(state.history[0], settings.epochs)
    else:
        state, best = found
        progress.note(f"resumed after epoch {state.history[-1].epoch}")
    while not _over(state, settings):
        state = _epoch(task, settings, state, optimiser, progress)
        if state.best == state.history[-1].epoch:
            best = copied(model.state_dict())
        save_state(task.folder, state, model, best, optimiser)
        progress.epoch(state.history[-1], settings.epochs)
    if state.best == 0:
        progress.note("  no epoch brought anything on the tuning part: the encoder stays as it was given")
    model.load_state_dict(best)
    model.eval()
    return state


def _over(state: State, settings: TrainSettings) -> bool:
    last = state.history[-1].epoch
    return last >= settings.epochs or last - state.best >= settings.patience


def _epoch(task: Task, settings: TrainSettings, state: State, optimiser: Any, progress: Progress) -> State:
    number = state.history[-1].epoch + 1
    begun = time.perf_counter()
    losses = run_epoch(task, settings, number, optimiser, progress)
    seconds = time.perf_counter() - begun
    tuning = _tuning(task)
    history = [*state.history, Epoch(number, float(np.mean(losses)), tuning, len(losses), round(seconds, 2))]
    before = state.history[state.best].tuning
    better = tuning is not None and (before is None or tuning > before)
    return State(state.seed, history, number if better else state.best)


def run_epoch(task: Task, settings: TrainSettings, number: int, optimiser: Any, progress: Progress) -> list[float]:
    """Take one step per batch and return their losses."""
    import torch

    rng = np.random.default_rng([settings.seed, number])
    torch.manual_seed(int(rng.integers(2**31)))
    task.trainee.encoder.model.train()
    planned = list(batches(task.corpus, task.parts.train, settings.batch, rng))
    losses = []
    for place, rows in enumerate(planned):
        loss = _step(task, settings, rows, optimiser)
        if loss is not None:
            losses.append(loss)
        progress.step(place + 1, len(planned))
    if not losses:
        raise DataError("no batch has a pair of one type and a pair of both. Give contexts with more sentences.")
    return losses


def _step(task: Task, settings: TrainSettings, rows: Any, optimiser: Any) -> float | None:
    import torch

    device = task.trainee.encoder.device
    pairs = find_pairs(
        torch.as_tensor(task.corpus.context[rows], device=device),
        torch.as_tensor(task.corpus.stereotype[rows], device=device),
    )
    if not pairs.positive.any() or not pairs.negative.any():
        return None
    loss = contrastive_loss(forward(task.trainee, rows, settings.buckets), pairs, settings.loss)
    value = float(loss.detach())
    if not np.isfinite(value):
        raise DataError(f"the loss is {value}: training fell apart. Lower --learning-rate, or raise --temperature.")
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return value


def _tuning(task: Task) -> float | None:
    rows = task.parts.tuning
    # Signed: the absolute value would also reward an encoder for putting opposed sentences together.
    return delta(pair_sums(embed(task.trainee, rows), task.corpus, rows), resamples=0).signed
