"""Draw tokens from logits, seeded per request: draws do not depend on other requests or on a library's generator."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.contracts.records import Generate, Sampling

Row = npt.NDArray[np.float64]
_canonical = msgspec.json.Encoder(order="sorted")


def seed_of(request: Generate) -> bytes:
    """Return the seed of a request's draws.

    A seed the request names is joined with the number of the repeat and of the attempt, so that each draw is
    independent. Without one, the seed is the digest of the whole request: equal requests draw alike.
    """
    if request.sampling.seed is None:
        return hashlib.sha256(_canonical.encode(request)).digest()
    return hashlib.sha256(f"{request.sampling.seed} {request.sample} {request.attempt}".encode()).digest()


def uniform(seed: bytes, step: int) -> float:
    """Return a number in [0, 1) that depends on seed and step alone."""
    word = hashlib.sha256(seed + step.to_bytes(8, "little")).digest()
    return float((int.from_bytes(word[:8], "little") >> 11) * 2.0**-53)


def log_softmax(logits: npt.NDArray[np.floating]) -> Row:
    """Turn logits into natural log-probabilities, in float64."""
    row: Row = np.array(logits, dtype=np.float64)
    row -= row.max()
    row -= np.log(np.exp(row).sum())
    return row


def draw(row: Row, sampling: Sampling, point: float) -> int:
    """Draw a token from log-probabilities.

    Args:
        row: one log-probability per token of the vocabulary.
        sampling: temperature 0 takes the likeliest token, the first of equals; None is 1. `top_k` first, then `min_p`,
            then `top_p` rule tokens out.
        point: where in [0, 1) the draw falls.
    """
    temperature = 1.0 if sampling.temperature is None else sampling.temperature
    if temperature <= 0:
        return int(row.argmax())
    order = np.argsort(-row, kind="stable")
    chances = np.exp(log_softmax(row[order] / temperature))
    if sampling.top_k is not None or sampling.min_p:
        chances = chances[: sampling.top_k]
        chances = chances[chances >= (sampling.min_p or 0.0) * chances[0]]
        chances = chances / chances.sum()
    cumulated = chances.cumsum()
    if sampling.top_p is not None and sampling.top_p < 1:
        kept = int(np.searchsorted(cumulated, sampling.top_p)) + 1
        cumulated = cumulated[:kept]
    place = int(np.searchsorted(cumulated, point * cumulated[-1], side="right"))
    return int(order[min(place, len(cumulated) - 1)])
