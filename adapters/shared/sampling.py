"""Choose the next token: the likeliest, or a draw that depends on nothing but its own request.

A draw takes the token with the largest logit plus Gumbel noise, which is a sample of the softmax (Gumbel 1954; Maddison
et al. 2014). The noise of a token is a hash of the request's key, the step and the token's number: a generator that
counts and keeps no state, so the noise is the same in every batch and on every device. The key is a digest of the seed,
of the numbers of sample and attempt, and of what the model reads: prompt tokens and images. So equal requests draw
alike, and all others independently, those with one seed and different prompts among them. Temperature and limits are
no part of it: another temperature is the same draw from a flatter distribution.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Generate, Sampling

_MASK = (1 << 64) - 1
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Constants of splitmix64 (Steele, Lea and Flood 2014)."""


class Defaults(NamedTuple):
    """Defaults for sampling that a request does not set."""

    temperature: float = 0.0
    """0 takes the likeliest token."""
    top_p: float = 1.0
    top_k: int = 0
    """0 sets no limit."""


class Choice(NamedTuple):
    """How the tokens of one answer are chosen."""

    key: int
    """64 bits that all noise of this answer follows from."""
    temperature: float
    """0 takes the likeliest token."""
    top_p: float = 1.0
    top_k: int = 0
    """0 sets no limit."""
    min_p: float = 0.0
    """Least probability of a token, as a share of that of the likeliest."""


HONOURED = frozenset({"top_k", "min_p"})
"""What of `Generate.beyond` these draws can do."""


def choose(request: Generate, defaults: Defaults, ids: Sequence[int], images: Sequence[str] = ()) -> Choice:
    """Return how to sample the answer to a prompt with these tokens and images (sha256).

    Raises:
        PermanentError: a value out of range.
    """
    wish = request.sampling
    temperature = defaults.temperature if wish.temperature is None else wish.temperature
    top_p = defaults.top_p if wish.top_p is None else wish.top_p
    if not 0 <= temperature < float("inf"):
        raise PermanentError(
            f"temperature is {temperature}. Give 0 (the likeliest token) or more.", code="request.value"
        )
    if not 0 < top_p <= 1:
        raise PermanentError(f"top_p is {top_p}. Give more than 0 and at most 1.", code="request.value")
    check_limits(wish)
    top_k, min_p = defaults.top_k if wish.top_k is None else wish.top_k, wish.min_p or 0.0
    return Choice(noise_key(request, ids, images), temperature, top_p, top_k, min_p)


def check_limits(wish: Sampling) -> None:
    """Refuse limits of draws that are out of range.

    Raises:
        PermanentError: which.
    """
    if wish.top_k is not None and wish.top_k < 1:
        raise PermanentError(f"top_k is {wish.top_k}. Give 1 or more.", code="request.value")
    if not 0 <= (wish.min_p or 0.0) <= 1:
        raise PermanentError(f"min_p is {wish.min_p}. Give 0 to 1.", code="request.value")


def check_answer(wish: Sampling) -> None:
    """Refuse settings under which no answer can be given.

    Raises:
        PermanentError: no token at all, or a stop text that would end every answer before it begins.
    """
    if wish.max_tokens is not None and wish.max_tokens < 1:
        raise PermanentError(f"max_tokens is {wish.max_tokens}. Give 1 or more.", code="request.value")
    if "" in wish.stop:
        raise PermanentError(
            "a stop text is empty: every answer would end before it begins. Leave it out.", code="request.value"
        )


def answer_length(request: Generate, default: int, room: int | None, more: int = 0) -> int:
    """Return how many tokens an answer may have if the model has `room` for this many: it ends where the room does.

    Args:
        request: What is asked; its limit is that of the answer itself.
        default: The limit of a request without one.
        room: What the model's context leaves; None is no limit.
        more: Tokens for what a model writes before its answer.

    Raises:
        PermanentError: as `check_answer` says, or a prompt that leaves no room.
    """
    check_answer(request.sampling)
    if room is not None and room < 1:
        raise PermanentError(
            "the prompt fills the model's context and leaves no room to answer. Shorten it; it is not cut here, since "
            "that would ask another question.",
            code="request.too-long",
        )
    asked = request.sampling.max_tokens
    most = (default if asked is None else asked) + more
    return most if room is None else min(most, room)


def piece_text(piece: bytes) -> str:
    """Return a token as text; bytes that are no whole character are named one by one, such as <0xE6>."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in piece)


def cut_at(text: str, stops: Sequence[str]) -> int | None:
    """Return where the first of the stop texts begins in `text`; None if there is none."""
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=None)


def noise_key(request: Generate, ids: Sequence[int], images: Sequence[str] = ()) -> int:
    """Return what a request's noise follows from; no seed is a seed of its own, other than 0."""
    numbers = f"{request.sampling.seed} {request.sample} {request.attempt}"
    said = "/".join((numbers, ",".join(map(str, ids)), ",".join(images)))
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big")


def pick(logits: Any, choices: Sequence[Choice], steps: int | Sequence[int]) -> Any:
    """Return one token per row of `logits` [row, vocabulary] in float32; `steps` numbers it in its answer, by row."""
    import torch

    best = logits.argmax(-1)
    drawn = [row for row, choice in enumerate(choices) if choice.temperature > 0]
    if drawn:
        rows = torch.tensor(drawn, device=logits.device)
        numbers = [steps if isinstance(steps, int) else steps[row] for row in drawn]
        best[rows] = _draw(logits[rows], [choices[row] for row in drawn], numbers)
    return best


def noise(keys: Sequence[int], steps: Sequence[int], size: int, device: str) -> Any:
    """Return standard Gumbel noise for a step of each key, [key, token] in float64."""
    import torch

    # MPS has no float64.
    place = "cpu" if device.startswith("mps") else device
    states = [_signed(_mix((key + step * _GOLDEN) & _MASK)) for key, step in zip(keys, steps, strict=True)]
    state = torch.tensor(states, device=place)[:, None]
    hashed = state + torch.arange(1, size + 1, device=place) * _signed(_GOLDEN)
    hashed = (hashed ^ _shift(hashed, 30)) * _signed(_FIRST)
    hashed = (hashed ^ _shift(hashed, 27)) * _signed(_SECOND)
    uniform = (_shift(hashed ^ _shift(hashed, 31), 12).double() + 0.5) * 2.0**-52
    return uniform.log_().neg_().log_().neg_()


def _draw(logits: Any, choices: Sequence[Choice], steps: Sequence[int]) -> Any:
    import torch

    device = logits.device
    temperature = torch.tensor([choice.temperature for choice in choices], device=device)
    scaled = _filter(logits / temperature[:, None], choices)
    gumbel = noise([choice.key for choice in choices], steps, logits.shape[-1], str(device))
    return (scaled.to(gumbel.device).double() + gumbel).argmax(-1).to(device)


def _filter(logits: Any, choices: Sequence[Choice]) -> Any:
    """Exclude all but the `top_k` likeliest tokens, then those below `min_p`, then those beyond the first `top_p`."""
    import torch

    if all((choice.top_p, choice.top_k, choice.min_p) == (1, 0, 0) for choice in choices):
        return logits
    device, size = logits.device, logits.shape[-1]
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    most = torch.tensor([choice.top_k or size for choice in choices], device=device)
    ordered = ordered.masked_fill(torch.arange(size, device=device) >= most[:, None], -torch.inf)
    least = torch.tensor([choice.min_p for choice in choices], device=device)[:, None]
    chances = ordered.softmax(-1)
    chances = ordered.masked_fill_(chances < least * chances[:, :1], -torch.inf).softmax(-1)
    top_p = torch.tensor([choice.top_p for choice in choices], device=device)[:, None]
    behind = (chances.cumsum(-1) - chances >= top_p) & (top_p < 1)
    return torch.empty_like(logits).scatter_(-1, order, ordered.masked_fill(behind, -torch.inf))


def _shift(values: Any, bits: int) -> Any:
    """Shift 64-bit integers right as unsigned numbers."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * _FIRST) & _MASK
    value = ((value ^ (value >> 27)) * _SECOND) & _MASK
    return value ^ (value >> 31)
