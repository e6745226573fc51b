"""Reading of a stored response: reasoning apart, refusals in words, and what the study's reader finds.

The store has the text as received and what the provider signals. Everything else is decided here, whenever a response
is read: a better rule needs no new answer. Behind an apology there may be an answer in the form that the study asked
for; such an answer is read. A refusal that only quotes one is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import polars as pl

from ..contracts import Stage, Unreadable
from ..contracts.canonical import decode_response, encode_response
from ..contracts.records import AnyResponse, Classification, Generation, ResponseStatus, Scalar
from ..reading.reasoning import REASONING_READER_VERSION, split_reasoning
from ..reading.refusals import REFUSAL_READER_VERSION, behind_refusal, declines

Outcome = Literal["unreadable", "refused", "filtered", "empty"]
"""Outcomes whose stored answers a run may ask anew. An empty answer that cannot be read is unreadable too."""
READERS: Mapping[str, int] = {"reasoning": REASONING_READER_VERSION, "refusal": REFUSAL_READER_VERSION}
"""Versions of what reads every response before a study does; a manifest records them."""
REFUSAL = "I'm sorry, but I can't assist with that."
ALONE = 4
"""Most words of an answer without others, such as `The answer is neutral`."""
NO_LABEL = "no label"
"""Reason of an answer in words that is none of the labels of a classification."""


def as_read(response: AnyResponse) -> AnyResponse:
    """Return what a stage reads of a response: the answer apart from its reasoning, refused where it declines.

    What was read before stays as it is.
    """
    match response:
        case Generation():
            reasoning, answer = split_reasoning(response.text, response.reasoning, opened=response.opened)
            status = _status(response, answer)
            if (answer, reasoning, status) == (response.text, response.reasoning, response.status):
                return response if not response.opened else msgspec.structs.replace(response, opened=False)
            return msgspec.structs.replace(response, text=answer, reasoning=reasoning, status=status, opened=False)
        case Classification() if not response.probabilities and _status(response, response.text) != response.status:
            return msgspec.structs.replace(response, status="refused")
    return response


def _status(response: Generation | Classification, answer: str) -> ResponseStatus:
    return "refused" if response.status == "ok" and declines(answer) else response.status


def read_status(encoded: str) -> ResponseStatus:
    """Return the status of a stored response, as it is read now."""
    return as_read(decode_response(encoded)).status


def read_part(part: pl.DataFrame) -> pl.DataFrame:
    """Return stored trials with their responses and statuses as they are read."""
    responses, statuses = part["response"].to_list(), part["status"].to_list()
    changed = False
    for row, encoded in enumerate(responses):
        if encoded is None:
            continue
        stored = decode_response(encoded)
        if (read := as_read(stored)) is not stored:
            responses[row], statuses[row], changed = encode_response(read).decode(), read.status, True
    if not changed:
        return part
    columns = (pl.Series("response", responses, dtype=pl.String), pl.Series("status", statuses, dtype=pl.String))
    return part.with_columns(*columns)


def read_answer(
    stage: Stage, factors: Mapping[str, Scalar], response: AnyResponse
) -> Mapping[str, Scalar] | Unreadable | None:
    """Return what a stage reads from a response, `Unreadable`, or None: it was refused or filtered.

    A refused answer counts as read if the stage can read all of it, and also what stands behind the sentences that
    decline; and if the stage cannot read a mere refusal, which a stage that takes any text can. If the stage finds an
    answer within other words (`StageRules.prose`), no others may stand behind those sentences: a longer text may name
    an answer without giving it.
    """
    response = as_read(response)
    if response.status == "ok" and isinstance(response, Classification) and not response.probabilities:
        return Unreadable(NO_LABEL)
    if response.status == "ok":
        return stage.read(factors, response)
    if response.status != "refused" or not isinstance(response, Generation):
        return None
    behind = behind_refusal(response.text)
    if not behind or (stage.rules.prose and len(behind.split()) > ALONE):
        return None
    complete, remainder, mere = (
        stage.read(factors, msgspec.structs.replace(response, text=text)) for text in (response.text, behind, REFUSAL)
    )
    unread = isinstance(complete, Unreadable) or isinstance(remainder, Unreadable) or not isinstance(mere, Unreadable)
    return None if unread else complete


def outcomes_of(stage: Stage, factors: Mapping[str, Scalar], response: AnyResponse) -> frozenset[Outcome]:
    """Return the outcomes of a response for which it may be asked anew; none for an answer that is read."""
    response = as_read(response)
    outcome = read_answer(stage, factors, response)
    if outcome is None:
        return frozenset({"refused" if response.status == "refused" else "filtered"})
    empty: frozenset[Outcome] = frozenset()
    if response.status == "ok" and isinstance(response, Generation) and not response.text.strip():
        empty = frozenset({"empty"})
    return empty | {"unreadable"} if isinstance(outcome, Unreadable) else empty
