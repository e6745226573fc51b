"""The settings of a training, and the record of its result."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from .delta_sim import Delta
from .splits import SplitBy

LossName = Literal["nt-xent", "nt-bxent", "pairwise", "triplet"]
LOSSES: tuple[LossName, ...] = get_args(LossName)
Criterion = Literal["delta_sim", "absolute_delta_sim", "loss"]
Schedule = Literal["constant", "linear", "cosine"]
Precision = Literal["float32", "bfloat16", "float16"]


class LossSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A loss and its parameters."""

    name: LossName
    temperature: float = 0.1
    """Temperature of NT-Xent and NT-BXent."""
    margin: float = 0.5
    """Margin of the pairwise and the triplet loss."""
    positive_weight: float = 1.0
    """Weight of the positive pairs in NT-BXent."""
    negative_weight: float = 1.0
    """Weight of the negative pairs in NT-BXent."""

    @property
    def parameter(self) -> Literal["temperature", "margin"]:
        """Return the name of the parameter that this loss has."""
        return "temperature" if self.name in ("nt-xent", "nt-bxent") else "margin"

    @property
    def chosen(self) -> float:
        """Return the value of that parameter."""
        return self.temperature if self.parameter == "temperature" else self.margin


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the Trainer; the defaults are the paper's, but for the number of epochs."""

    seed: int = 0
    epochs: int = 30
    patience: int = 3
    """Training stops after this many epochs without a better value of the criterion."""
    criterion: Criterion = "delta_sim"
    """The value of the tuning part by which training stops and the best epoch is chosen."""
    batch: int = 256
    """Sentences per step; on average, where batches are whole contexts."""
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    schedule: Schedule = "constant"
    """Schedule of the learning rate, after the warm-up."""
    warmup: float = 0.0
    """Share of all steps in which the learning rate rises."""
    precision: Precision = "float32"
    """Precision of the forward pass (automatic mixed precision); weights are float32."""

    def score(self, value: float | None) -> float:
        """Return a number that is greater for a better value of the criterion, and lowest for a missing one."""
        return float("-inf") if value is None else -value if self.criterion == "loss" else value


class TrainSettings(Recipe, frozen=True, kw_only=True):
    """How an encoder is trained with one loss."""

    loss: LossSettings
    buckets: bool = True
    """Pad sentences of similar length together, not the whole batch."""


class Cell(msgspec.Struct, frozen=True):
    """One training: a split and its settings."""

    split: SplitBy
    settings: TrainSettings

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        loss = self.settings.loss
        return f"{self.split}-{loss.name}-{loss.parameter[0]}{loss.chosen:g}-s{self.settings.seed}"


class Epoch(msgspec.Struct, frozen=True):
    """One epoch of the training's history; epoch 0 is the encoder before training."""

    epoch: int
    loss: float | None
    tuning: float | None
    """The criterion on the tuning part."""
    steps: int = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one training."""

    name: str
    split: SplitBy
    settings: TrainSettings
    history: list[Epoch]
    best: int
    """The epoch whose weights are kept."""
    tuning: float | None
    """Delta-sim of the tuning part at that epoch, with its sign."""
    before: dict[str, Delta]
    """Validation delta-sim of the encoder before training: `overall` and by category."""
    after: dict[str, Delta]
    sizes: dict[str, int]
    """Sentences of each part."""
    repeated: int
    """Validation sentences that are also, word for word, among the others."""
    trainer: dict[str, str] = {}
    """Versions and settings that sentence-transformers' Trainer recorded for the model card."""

    @property
    def rank(self) -> float:
        """Return a number that is greater for a better encoder, and lowest without a tuning value."""
        return float("-inf") if self.tuning is None else self.tuning
