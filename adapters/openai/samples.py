"""Several samples of one question in one call (`n`), where the endpoint offers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ...core.contracts.errors import ModelError, PermanentError, TransientError
from ...core.contracts.records import Generate, Generation, Usage
from ..endpoint.errors import FilteredError
from .replies import ChatReply, usage_of

Ask = Callable[[Generate, int], Awaitable[tuple[ChatReply, bytes]]]
Read = Callable[[ChatReply, bytes, Generate], Generation]


def groups_of(requests: Sequence[Generate], most: int) -> list[list[int]]:
    """Return the places of requests that differ in their sample alone, at most so many together."""
    found: dict[Generate, list[int]] = {}
    for place, request in enumerate(requests):
        found.setdefault(msgspec.structs.replace(request, sample=0), []).append(place)
    return [places[start : start + most] for places in found.values() for start in range(0, len(places), most)]


async def ask_several(requests: Sequence[Generate], ask: Ask, read: Read, where: str) -> list[Generation | ModelError]:
    """Return a sample per request, from one call; its tokens are shared out among them, and none is lost.

    Raises:
        FilteredError: a filter stopped the question.
        ModelError: no answer was received.
    """
    reply, raw = await ask(requests[0], len(requests))
    shares = share(usage_of(reply.usage), min(len(reply.choices), len(requests)))
    answers: list[Generation | ModelError] = []
    for place, request in enumerate(requests):
        if place >= len(reply.choices):
            answers.append(
                PermanentError(
                    f"{where} sent {len(reply.choices)} of {len(requests)} samples. Set samples_per_call = 1: the "
                    "endpoint does not know n.",
                    code="endpoint.samples",
                )
            )
        elif reply.choices[place].error:
            answers.append(TransientError(f"{where} ended a sample with an error.", code="endpoint.broken-off"))
        else:
            answers.append(_one(msgspec.structs.replace(reply, choices=[reply.choices[place]]), raw, request, read))
            if isinstance(made := answers[-1], Generation):
                answers[-1] = msgspec.structs.replace(made, usage=shares[place])
    return answers


def _one(reply: ChatReply, raw: bytes, request: Generate, read: Read) -> Generation | ModelError:
    try:
        return read(reply, raw, request)
    except FilteredError:
        raise
    except ModelError as error:
        return error


def share(usage: Usage, parts: int) -> list[Usage]:
    """Return the counts of a call in whole numbers that add up to them."""
    counts = msgspec.structs.asdict(usage)

    def part(count: int, place: int) -> int:
        whole, rest = divmod(count, parts)
        return whole + (place < rest)

    return [Usage(**{name: part(count, place) for name, count in counts.items()}) for place in range(parts)]
