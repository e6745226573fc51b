"""The state of a training between two epochs, in safetensors and JSON: what a kill leaves is taken up again.

Every epoch seeds its own random numbers from the seed and its number, so the generators need no state of their own.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from ...core.contracts.errors import DataError

EPOCH = "epoch-"


class Epoch(msgspec.Struct, frozen=True):
    """What one epoch came to; epoch 0 is the encoder as it was given."""

    epoch: int
    loss: float | None
    tuning: float | None
    """Delta-sim of the tuning part, all categories pooled, with its sign."""
    steps: int = 0
    seconds: float = 0.0


class State(msgspec.Struct, frozen=True):
    """How far a training is."""

    seed: int
    history: list[Epoch]
    best: int
    """The epoch with the highest delta-sim of the tuning part."""


def save_state(folder: Path, state: State, model: Any, best: dict[str, Any], optimiser: Any) -> None:
    """Write the state after an epoch under a new name, then drop the one before: there is always a whole one."""
    from safetensors.torch import save_file

    last = state.history[-1].epoch
    final, draft = folder / f"{EPOCH}{last:05d}", folder / f"draft-{last:05d}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    save_file(copied(model.state_dict()), draft / "model.safetensors")
    save_file(best, draft / "best.safetensors")
    moments = {
        f"{place}.{name}": value
        for place, values in optimiser.state_dict()["state"].items()
        for name, value in values.items()
    }
    save_file(copied(moments), draft / "optimiser.safetensors")
    (draft / "state.json").write_bytes(msgspec.json.format(msgspec.json.encode(state)))
    draft.rename(final)
    for old in folder.glob(f"{EPOCH}*"):
        if old != final:
            shutil.rmtree(old)


def load_state(folder: Path, seed: int, model: Any, optimiser: Any) -> tuple[State, dict[str, Any]] | None:
    """Put the last whole state into a model and its optimiser; return it and the best weights. None if there is none.

    Raises:
        DataError: the state belongs to another seed or model.
    """
    from safetensors.torch import load_file

    there = sorted(folder.glob(f"{EPOCH}*"))
    if not there:
        return None
    state = msgspec.json.decode((there[-1] / "state.json").read_bytes(), type=State)
    if state.seed != seed:
        raise DataError(f"{str(there[-1])!r} is of seed {state.seed}, not {seed}. Give another --out.")
    model.load_state_dict(load_file(there[-1] / "model.safetensors"))
    moments: dict[int, dict[str, Any]] = {}
    for key, value in load_file(there[-1] / "optimiser.safetensors").items():
        place, name = key.split(".", 1)
        moments.setdefault(int(place), {})[name] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
    return state, load_file(there[-1] / "best.safetensors")


def copied(tensors: dict[str, Any]) -> dict[str, Any]:
    """Return tensors on the processor, each with memory of its own: safetensors refuses shared ones."""
    return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()}
