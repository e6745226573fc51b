"""Reading of an answer: a study's reader judges before the rule for refusals does.

An adapter gives an answer that opens like a refusal the status `refused`. Behind the apology there may be an answer in
the form that the study asked for; such an answer is read. A refusal that only quotes one is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ..contracts import Stage, Unreadable
from ..contracts.records import AnyResponse, Generation, Scalar
from ..reading.refusals import behind_refusal

Outcome = Literal["unreadable", "refused", "filtered", "empty"]
"""Outcomes whose stored answers a run may ask anew. An empty answer that cannot be read is unreadable too."""
REFUSAL = "I'm sorry, but I can't assist with that."
ALONE = 4
"""Most words of an answer without others, such as `The answer is neutral`."""


def read_answer(
    stage: Stage, factors: Mapping[str, Scalar], response: AnyResponse
) -> Mapping[str, Scalar] | Unreadable | None:
    """Return what a stage reads from a response, `Unreadable`, or None: it was refused or filtered.

    A refused answer counts as read if the stage can read all of it, and also what stands behind the sentences that
    decline; and if the stage cannot read a mere refusal, which a stage that takes any text can. If the stage finds an
    answer within other words (`StageRules.prose`), no others may stand behind those sentences: a longer text may name
    an answer without giving it.
    """
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
    outcome = read_answer(stage, factors, response)
    if outcome is None:
        return frozenset({"refused" if response.status == "refused" else "filtered"})
    empty: frozenset[Outcome] = frozenset()
    if response.status == "ok" and isinstance(response, Generation) and not response.text.strip():
        empty = frozenset({"empty"})
    return empty | {"unreadable"} if isinstance(outcome, Unreadable) else empty
