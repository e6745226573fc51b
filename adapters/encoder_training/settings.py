"""Which trainings a call is: splits, seeds, losses and their parameters; and what each of them came to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import msgspec

from .delta_sim import Delta
from .splits import SelectOn, SplitBy

LossName = Literal["nt-xent", "nt-bxent", "pairwise", "triplet"]
LOSSES: tuple[LossName, ...] = get_args(LossName)
BY_TEMPERATURE: tuple[LossName, ...] = ("nt-xent", "nt-bxent")
Schedule = Literal["constant", "linear", "cosine"]
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
Precision = Literal["float32", "bfloat16", "float16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


class LossSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A loss and its parameters."""

    name: LossName
    temperature: float = 0.1
    """Of NT-Xent and NT-BXent."""
    margin: float = 0.5
    """Of the pairwise and the triplet loss."""
    positive_weight: float = 1.0
    """Of the positive pairs in NT-BXent."""
    negative_weight: float = 1.0
    """Of the negative pairs in NT-BXent."""

    @property
    def parameter(self) -> Literal["temperature", "margin"]:
        """Return which of the two this loss has."""
        return "temperature" if self.name in BY_TEMPERATURE else "margin"

    @property
    def chosen(self) -> float:
        """Return the value of that one."""
        return self.temperature if self.name in BY_TEMPERATURE else self.margin


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How the Trainer goes about it."""

    seed: int = 0
    epochs: int = 30
    patience: int = 3
    """Epochs without a better value of the criterion before it stops."""
    criterion: str = "delta_sim"
    """What stops early and chooses the epoch: `delta_sim`, `absolute_delta_sim` or `loss` of the tuning part."""
    batch: int = 256
    """Sentences per step; where batches are of whole contexts, as many as fit."""
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    schedule: Schedule = "constant"
    """Of the learning rate, after the warm-up."""
    warmup: float = 0.0
    """Share of all steps in which the learning rate rises."""
    precision: Precision = "float32"
    """Of the forward pass in training (automatic mixed precision); weights stay in float32."""

    @property
    def greater_is_better(self) -> bool:
        """Tell which values of the criterion are good."""
        return self.criterion != "loss"


class TrainSettings(Recipe, frozen=True, kw_only=True):
    """How to train with one loss; the defaults are the paper's, but for the number of epochs its grid varies."""

    loss: LossSettings
    buckets: bool = True
    """Pad within passes of like length only."""


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """What to train."""

    splits: tuple[SplitBy, ...]
    seeds: tuple[int, ...]
    losses: tuple[LossName, ...]
    temperatures: tuple[float, ...]
    margins: tuple[float, ...]
    shared: TrainSettings
    """What all trainings have in common, the weights of the loss among it."""
    select: SelectOn = "inner"
    """`validation`: stop early and choose on the part that is reported, as the paper does."""


class Cell(msgspec.Struct, frozen=True):
    """One training."""

    split: SplitBy
    settings: TrainSettings

    @property
    def name(self) -> str:
        """Return what its folder is called."""
        loss = self.settings.loss
        return f"{self.split}-{loss.name}-{loss.parameter[0]}{loss.chosen:g}-s{self.settings.seed}"


class Epoch(msgspec.Struct, frozen=True):
    """What one epoch came to; epoch 0 is the encoder as it was given."""

    epoch: int
    loss: float | None
    tuning: float | None
    """The criterion on the tuning part: delta-sim with its sign, all categories pooled."""
    steps: int = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one training came to."""

    name: str
    split: SplitBy
    settings: TrainSettings
    history: list[Epoch]
    best: int
    tuning: float | None
    """Highest delta-sim of the tuning part."""
    before: dict[str, Delta]
    """Validation delta-sim of the encoder as it was given: `overall` and by category."""
    after: dict[str, Delta]
    sizes: dict[str, int]
    """Sentences of each part."""
    repeated: int
    """Validation sentences that stand word for word among the others."""
    trainer: dict[str, str] = {}
    """Versions and settings that sentence-transformers' Trainer recorded for the model card."""


def cells(grid: Grid) -> Iterator[Cell]:
    """Yield all trainings: by split, seed, loss, then temperature or margin."""
    for split in grid.splits:
        for seed in grid.seeds:
            for name in grid.losses:
                for value in grid.temperatures if name in BY_TEMPERATURE else grid.margins:
                    loss = _loss(grid.shared.loss, name, value)
                    yield Cell(split, msgspec.structs.replace(grid.shared, loss=loss, seed=seed))


def _loss(shared: LossSettings, name: LossName, value: float) -> LossSettings:
    weights = {"positive_weight": shared.positive_weight, "negative_weight": shared.negative_weight}
    parameter = LossSettings(name=name).parameter
    return LossSettings(name=name, **{parameter: value}, **(weights if name == "nt-bxent" else {}))


def rank(tuning: float | None) -> float:
    """Return a key by which a missing tuning value comes last."""
    return float("-inf") if tuning is None else tuning
