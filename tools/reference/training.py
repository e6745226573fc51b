"""Common parts of the training of reference models: the schedule and the steps."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

import torch

LOG = logging.getLogger(__name__)


class Schedule(NamedTuple):
    """How many steps to take, and how large."""

    steps: int
    peak: float
    """Highest learning rate; it rises over the first twentieth of the steps and falls to zero as a cosine."""

    def part(self, step: int) -> float:
        """Return the part of the peak at a step."""
        warm = max(self.steps // 20, 1)
        left = torch.tensor((step - warm) / max(self.steps - warm, 1))
        return step / warm if step < warm else float(0.5 * (1 + torch.cos(torch.pi * left)))


class Effort(NamedTuple):
    """How much to train; None is the kind's own."""

    steps: int | None = None
    lines: int | None = None
    """Planted lines of the corpus."""
    seed: int = 0


def fit(model: torch.nn.Module, loss_at: Callable[[int], torch.Tensor], schedule: Schedule, name: str) -> None:
    """Take all steps, from 1 on; `name` is for the lines of progress."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=schedule.peak, betas=(0.9, 0.98), weight_decay=0.0)
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, schedule.part)
    for step in range(1, schedule.steps + 1):
        loss = loss_at(step)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        falling.step()
        if step % 100 == 1 or step == schedule.steps:
            LOG.info("%s: step %d/%d, loss %.4f", name, step, schedule.steps, loss.item())
