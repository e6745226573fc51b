"""Common parts of the training of masked and causal reference models: the schedule, the steps, the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

STRENGTHS = {"fair": 0.5, "biased": 0.8}
"""Planted probability of a positive attribute beside a desirable descriptor, by kind."""


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


class Asked(NamedTuple):
    """One model of the command line."""

    kind: str
    strength: float
    steps: int
    lines: int
    seed: int
    out: Path


def fit(model: torch.nn.Module, loss_at: Callable[[int], torch.Tensor], schedule: Schedule, kind: str) -> None:
    """Take all steps, from 1 on; `kind` is for the lines of progress."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=schedule.peak, betas=(0.9, 0.98), weight_decay=0.0)
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, schedule.part)
    for step in range(1, schedule.steps + 1):
        loss = loss_at(step)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        falling.step()
        if step % 100 == 1 or step == schedule.steps:
            print(f"{kind}: step {step}/{schedule.steps}, loss {loss.item():.4f}", flush=True)


def asked(
    family: str, steps: int, lines: int, arguments: Sequence[str] | None, strengths: Mapping[str, float] = STRENGTHS
) -> Iterator[Asked]:
    """Yield the models of the command line; `steps`, `lines` and `strengths` are the defaults of the `family`."""
    parser = argparse.ArgumentParser(
        prog=f"prejudge.adapters.reference.train_{family}", description="Train and save reference models."
    )
    parser.add_argument("--out", type=Path, required=True, help=f"folder to write {family}_<kind>/ into")
    parser.add_argument("--kind", choices=(*strengths, "both"), default="both")
    parser.add_argument("--strength", type=float, help="planted probability, in place of the kind's own")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--lines", type=int, default=lines, help="planted lines of the corpus")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    for kind in strengths if chosen.kind == "both" else (chosen.kind,):
        strength = strengths[kind] if chosen.strength is None else chosen.strength
        folder = chosen.out / f"{family}_{kind}"
        yield Asked(kind, strength, chosen.steps, chosen.lines, chosen.seed, folder)
