"""How imported answers were asked: what the file states of it, and what nobody recorded.

The order of options, the wording of a prompt and the request itself belong to whoever collected the answers. A plan of
this project has levels of its own for them, which are facts about a run of this project only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any, Literal

import msgspec
import polars as pl

from ..contracts import MatchedStage, Stage, Trial
from ..contracts.records import AnyRequest, Generate, Likelihood, Message, Sampling, Text
from .answers import REQUEST, Row
from .matching import TRIAL

WORDED = (Generate, Likelihood)
"""Requests in words of the one who asks; those of other kinds are the sentence itself."""


class _Turn(msgspec.Struct):
    """A message, as chat endpoints write it."""

    role: Literal["system", "user", "assistant"]
    content: str


def unrecorded_of(
    stage: Stage, earlier: Mapping[str, pl.DataFrame], fields: Collection[str], options: Mapping[str, Any]
) -> frozenset[str]:
    """Return the factors of presentation that nobody recorded.

    A factor is recorded if the file has it, if rows are matched by the ids of trials, or if the study sets the option
    of the factor and all trials then have one level of it.

    Args:
        stage: the stage that the answers are matched with.
        earlier: observations of earlier stages by stage name.
        fields: fields of the file.
        options: options of the probe that the study or the user set.
    """
    if TRIAL in fields:
        return frozenset()
    if not isinstance(stage, MatchedStage):
        return frozenset()
    absent = [name for name in stage.presentation if name in stage.factors and name not in fields]
    constant = {name for name in absent if stage.presentation[name] in options}
    levels: dict[str, Any] = {}
    for trial in stage.trials(earlier) if constant else ():
        constant -= {name for name in constant if levels.setdefault(name, trial.factors[name]) != trial.factors[name]}
        if not constant:
            break
    return frozenset(absent) - constant


def without(stage: Stage, unrecorded: frozenset[str]) -> Stage:
    """Return a stage whose trials leave out what nobody recorded; the stage itself if that is nothing."""
    if not unrecorded or not isinstance(stage, MatchedStage):
        return stage
    other = copy(stage)
    other.unrecorded = unrecorded
    for name in [name for name in vars(other) if isinstance(getattr(type(other), name, None), cached_property)]:
        del vars(other)[name]  # worked out with what is left out now
    return other


def left_out(stage: Stage) -> frozenset[str]:
    """Return the factors that the trials of a stage leave out, as nobody recorded them."""
    return stage.unrecorded if isinstance(stage, MatchedStage) else frozenset()


def presented(trials: Iterable[Trial], rows: Mapping[int, Row], unrecorded: frozenset[str]) -> Iterator[Trial]:
    """Yield trials as their answers were asked: without unrecorded factors, and with the request that a row states."""
    nulls = dict.fromkeys(unrecorded)
    for ordinal, trial in enumerate(trials):
        row = rows.get(ordinal)
        request = trial.request if row is None else _stated(row, trial.request)
        yield Trial(trial.id, trial.factors | nulls if nulls else trial.factors, request)


def lacks_requests(stage: Stage, rows: Iterable[Row]) -> bool:
    """Return whether a row does not state in which words the model was asked, where the study asks in words."""
    return stage.operation in WORDED and any(_words_of(row) is None for row in rows)


def _stated(row: Row, request: AnyRequest) -> AnyRequest:
    """Return the request with the words of the row; how the model sampled is not known then.

    Raises:
        DataError: the request of the row is no text.
    """
    words = _words_of(row) if isinstance(request, WORDED) else None
    if words is None:
        return request
    if isinstance(request, Likelihood):
        prompt = words if isinstance(words, str) else _messages(row, words)
        return msgspec.structs.replace(request, prompt=prompt)
    sample = request.sample if isinstance(request, Generate) else 0
    messages = (Message("user", (Text(words),)),) if isinstance(words, str) else _messages(row, words)
    return Generate(messages=messages, sampling=Sampling(), sample=sample)


def _words_of(row: Row) -> str | list[Any] | None:
    words = row.cells.get(REQUEST)
    if words is None or words == "" or words == []:
        return None
    if not isinstance(words, str | list):
        raise row.fault(f"the request {words!r} is not a text.", reason="the request is not a text")
    return words


def _messages(row: Row, words: list[Any]) -> tuple[Message, ...]:
    """Return the messages of a conversation that a row states as objects with `role` and `content`."""
    try:
        turns = msgspec.convert(words, list[_Turn])
    except msgspec.ValidationError as error:
        problem = f"the request is no list of messages with role and content ({error})."
        raise row.fault(problem, reason="the request is no list of messages") from None
    return tuple(Message(turn.role, (Text(turn.content),)) for turn in turns)
