"""Several samples of one question in one call (`n`, `candidateCount`), where the endpoint offers it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from ...core.contracts.errors import ModelError, PermanentError
from ...core.contracts.records import Generate, Generation, Usage
from .errors import FilteredError

Several = Callable[[Sequence[Generate]], Awaitable[Sequence[Generation | ModelError]]]
"""Answers requests in order, each failed one with its error; a failure of all is raised."""
_ONE_ONLY = re.compile(r"\bcandidate|\bn\b|multiple|samples", re.IGNORECASE)
"""What errors of models that give one sample per call name."""


def groups_of(requests: Sequence[Generate], most: int) -> list[list[int]]:
    """Return the places of requests that differ in their sample alone, at most so many together."""
    found: dict[Generate, list[int]] = {}
    for place, request in enumerate(requests):
        found.setdefault(msgspec.structs.replace(request, sample=0), []).append(place)
    return [places[start : start + most] for places in found.values() for start in range(0, len(places), most)]


async def ask_groups(
    requests: Sequence[Generate],
    most: int,
    alone: Several,
    several: Several,
    filtered: Callable[[FilteredError], Generation],
) -> list[Generation | ModelError]:
    """Answer requests, samples of one question by one call of `several`; what stops a call stops all its samples."""

    async def together(group: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        if len(group) == 1:
            return await alone(group)
        try:
            return await several(group)
        except FilteredError as stopped:
            return [filtered(stopped)] * len(group)
        except ModelError as error:
            return [_mended(error)] * len(group)

    groups = groups_of(requests, most)
    made = await asyncio.gather(*(together([requests[place] for place in places]) for places in groups))
    answers = dict(pair for places, group in zip(groups, made, strict=True) for pair in zip(places, group, strict=True))
    return [answers[place] for place in range(len(requests))]


def _mended(error: ModelError) -> ModelError:
    """Return the error of a model that gives one sample per call with the mend; any other as it is."""
    if error.code != "endpoint.refused" or not _ONE_ONLY.search(str(error)):
        return error
    return PermanentError(f"{error} {_MEND}", code="endpoint.samples")


_MEND = "Set samples_per_call = 1 if the model gives one sample per call."


def dealt(
    found: Iterable[Generation | ModelError], usage: Usage, wanted: int, where: str
) -> list[Generation | ModelError]:
    """Return a sample per request from those of one call, whose tokens are shared out: none is lost or counted twice.

    A sample that is missing has an error in its place.
    """
    answers = list(found)[:wanted]
    shares = share(usage, len(answers))
    missing = PermanentError(f"{where} sent {len(answers)} of {wanted} samples. {_MEND}", code="endpoint.samples")
    given = [
        msgspec.structs.replace(answer, usage=part) if isinstance(answer, Generation) else answer
        for answer, part in zip(answers, shares, strict=True)
    ]
    return given + [missing] * (wanted - len(given))


def share(usage: Usage, parts: int) -> list[Usage]:
    """Return the counts of a call in whole numbers that add up to them."""
    counts = msgspec.structs.asdict(usage)

    def part(count: int, place: int) -> int:
        whole, rest = divmod(count, parts)
        return whole + (place < rest)

    return [Usage(**{name: part(count, place) for name, count in counts.items()}) for place in range(parts)]


def settled(read: Callable[[], Generation]) -> Generation | ModelError:
    """Return the answer of one sample, or its error; a filter that stops the question is raised.

    Raises:
        FilteredError: see above.
    """
    try:
        return read()
    except FilteredError:
        raise
    except ModelError as error:
        return error
