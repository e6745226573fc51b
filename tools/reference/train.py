"""Train reference models, by name.

    python -m prejudge.adapters.reference.train NAME ... --out DIR

The same name gives the same bytes on the same machine with the same packages; elsewhere, the same up to rounding that
training amplifies. Training takes one thread, because the number of threads changes the rounding, too.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import torch

from ...adapters.reference.recipes import REFERENCES, Reference
from .training import Effort


def make(name: str, folder: Path) -> None:
    """Train a reference model and write its files into a folder."""
    train(REFERENCES[name], folder, Effort())


def train(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a reference model with another effort than its own, for tests."""
    with _alone():
        import_module(f".train_{one.kind}", __package__).make(one, folder, effort)


@contextmanager
def _alone() -> Iterator[None]:
    """Compute on one thread, and leave torch as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and save the models of the command line."""
    parser = argparse.ArgumentParser(prog=f"{__package__}.train", description="Train and save reference models.")
    parser.add_argument("names", nargs="+", choices=tuple(REFERENCES), metavar="NAME", help=", ".join(REFERENCES))
    parser.add_argument("--out", type=Path, required=True, help="folder to write NAME/ into")
    parser.add_argument("--steps", type=int, help="in place of the kind's own")
    parser.add_argument("--lines", type=int, help="planted lines of the corpus, in place of the kind's own")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for name in chosen.names:
        (chosen.out / name).mkdir(parents=True, exist_ok=True)
        train(REFERENCES[name], chosen.out / name, Effort(chosen.steps, chosen.lines, chosen.seed))


if __name__ == "__main__":
    main()
