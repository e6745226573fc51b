"""`Answer`: what the reply of any dialect says, and the record that is stored of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from ...core.contracts.records import Generate, Generation, ResponseStatus, TopToken, Usage
from ...core.reading.reasoning import find_stop
from .errors import FilteredError
from .options import EndpointOptions

MOST_KEPT = 20_000
"""Characters of a raw reply that are stored."""
_MOST_TOKENS = 2**31 - 1
"""Counts above this are none: an answer with one could not be stored."""
_NUMBERS = (int, float)
Keep = Literal["none", "unusual", "all"]


class Answer(NamedTuple):
    """An answer, as a parser reads it."""

    text: str
    finish: str
    """The provider's own word for why it ended."""
    reasoning: str = ""
    refused: bool = False
    """The provider marks a refusal."""
    filtered: bool = False
    """A content filter of the provider ended it."""
    usage: Usage = Usage()
    top_logprobs: tuple[tuple[TopToken, ...], ...] = ()


def generation_of(answer: Answer, request: Generate, options: EndpointOptions, *, cut: bool) -> Generation:
    """Return the record of an answer; with `cut`, up to the first of the stop texts."""
    opened = options.think_opened and not answer.reasoning
    end = find_stop(answer.text, request.sampling.stop, opened=opened) if cut else None
    return Generation(
        text=answer.text[:end],
        reasoning=answer.reasoning,
        opened=opened,
        status=_status(answer),
        finish_reason=answer.finish,
        usage=answer.usage,
        top_logprobs=answer.top_logprobs,
    )


def _status(answer: Answer) -> ResponseStatus:
    if answer.filtered:
        return "filtered"
    return "refused" if answer.refused else "ok"


def with_reply(answer: Generation, body: bytes, keep: Keep, known: frozenset[str]) -> Generation:
    """Return an answer with its raw reply, where it is to be kept; finish reasons are `known` in lower case."""
    usual = answer.status == "ok" and answer.finish_reason.lower() in known
    if keep == "none" or (keep == "unusual" and usual):
        return answer
    return msgspec.structs.replace(answer, reply=body.decode("utf-8", "replace")[:MOST_KEPT])


def count(told: object) -> int:
    """Return a number of tokens; what is no count is 0, and costs no answer."""
    # A union of types takes longer to look through than a tuple, and most counts are not there.
    return int(told) if isinstance(told, _NUMBERS) and 0 <= told <= _MOST_TOKENS else 0


def filtered_answer(stopped: FilteredError, keep: Keep, known: frozenset[str]) -> Generation:
    """Return the answer to a request that a content filter stopped."""
    made = Generation(text="", status="filtered", finish_reason=stopped.reason)
    return with_reply(made, stopped.body, keep, known)
