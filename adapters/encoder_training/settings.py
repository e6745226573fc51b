"""The losses, and how an encoder is trained."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

LOSSES: dict[str, tuple[Literal["temperature", "margin"], float]] = {
    "nt-xent": ("temperature", 0.1),
    "nt-bxent": ("temperature", 10.0),
    "pairwise": ("margin", 0.5),
    "triplet": ("margin", 0.5),
    "nt-xent-printed": ("temperature", 0.1),
    "nt-bxent-printed": ("temperature", 10.0),
}
"""Parameter of each loss, and its default: the value that the paper (NT-Xent, triplet) or its program chose."""
PROGRAM = tuple(LOSSES)[:4]
"""The losses of the authors' program; those after them are the formulas that the paper prints."""
GRID = {"temperature": (0.1, 0.5, 1.0, 10.0, 20.0, 30.0), "margin": (0.2, 0.3, 0.4, 0.5, 0.6)}
"""Values of the paper's appendix."""
SplitBy = Literal["context", "sentence"]
SelectOn = Literal["inner", "validation"]
Criterion = Literal["delta_sim", "absolute_delta_sim", "loss"]
Pooling = Literal["own", "cls", "mean"]
Schedule = Literal["constant", "linear", "cosine"]
Precision = Literal["float32", "bfloat16", "float16"]
SPLITS, SELECTS, POOLINGS, SCHEDULES, PRECISIONS = map(get_args, (SplitBy, SelectOn, Pooling, Schedule, Precision))


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How an encoder is trained; the defaults choose nothing on the part that is reported."""

    loss: str = "nt-bxent"
    value: float = 10.0
    """Temperature or margin of the loss."""
    split: SplitBy = "context"
    seed: int = 42
    """Seed of the split, of dropout, and of the order of contexts."""
    select: SelectOn = "inner"
    """The part by which training stops and the epoch is chosen: `inner` is not reported."""
    pooling: Pooling = "own"
    """How token vectors become one: as the model says (mean, if it does not), or by this module alone."""
    best: Criterion = "delta_sim"
    """The value by which the epoch is chosen."""
    stop: Criterion = "delta_sim"
    """The value that must improve within `patience` epochs."""
    epochs: int = 30
    patience: int = 3
    batch: int = 64
    """Sentences per step, on average: batches are whole contexts, so that 1 is one context per step."""
    reshuffle: bool = True
    """Whether each epoch has an order of its own."""
    learning_rate: float = 5e-5
    schedule: Schedule = "constant"
    """Schedule of the learning rate, after the warm-up."""
    warmup: float = 0.0
    """Share of all steps in which the learning rate rises."""
    precision: Precision = "float32"
    """Precision of the forward pass (automatic mixed precision); weights are float32."""

    @property
    def words(self) -> str:
        """Return the loss with its parameter."""
        return f"{self.loss}, {LOSSES[self.loss][0]} {self.value:g}"

    @property
    def name(self) -> str:
        """Return the name of the training's folder."""
        return f"{self.split}-{self.loss}-{LOSSES[self.loss][0][0]}{self.value:g}-s{self.seed}"


RECIPES = {
    "nested": Recipe(),
    "indicasa-2025": Recipe(
        select="validation",
        pooling="cls",
        best="absolute_delta_sim",
        stop="loss",
        epochs=100,
        patience=25,
        batch=1,
        reshuffle=False,
    ),
}
"""`indicasa-2025` is that of the authors' program (github.com/cerai-iitm/IndiCASA, commit ca5dd63)."""
