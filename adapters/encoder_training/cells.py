"""Which trainings a call is: splits, seeds, losses and their parameters; and what each of them came to."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .losses import BY_TEMPERATURE, LossName, LossSettings
from .parts import SelectOn, SplitBy
from .similarity import Delta
from .state import Epoch
from .train import TrainSettings


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """What to train."""

    splits: tuple[SplitBy, ...]
    seeds: tuple[int, ...]
    losses: tuple[LossName, ...]
    temperatures: tuple[float, ...]
    margins: tuple[float, ...]
    positive_weight: float = 1.0
    negative_weight: float = 1.0
    epochs: int = 30
    patience: int = 3
    batch: int = 256
    learning_rate: float = 5e-5
    buckets: bool = True
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


def cells(grid: Grid) -> Iterator[Cell]:
    """Yield all trainings: by split, seed, loss, then temperature or margin."""
    for split in grid.splits:
        for seed in grid.seeds:
            for loss in grid.losses:
                by_temperature = loss in BY_TEMPERATURE
                for value in grid.temperatures if by_temperature else grid.margins:
                    yield Cell(split, _settings(grid, seed, loss, value))


def _settings(grid: Grid, seed: int, loss: LossName, value: float) -> TrainSettings:
    knob = {"temperature": value} if loss in BY_TEMPERATURE else {"margin": value}
    weights = {"positive_weight": grid.positive_weight, "negative_weight": grid.negative_weight}
    shared = {name: getattr(grid, name) for name in ("epochs", "patience", "batch", "learning_rate", "buckets")}
    return TrainSettings(
        loss=LossSettings(name=loss, **knob, **(weights if loss == "nt-bxent" else {})), seed=seed, **shared
    )


def sizes(result: Result, select: SelectOn) -> str:
    """Return how many sentences each part has, in words."""
    count = result.sizes
    if select == "validation":
        return f"train {count['train']:,}, validation (which served for tuning too) {count['validation']:,}"
    return ", ".join(f"{name} {number:,}" for name, number in count.items())
