"""`Bench`: a study that is asked, read and measured in memory, as a run does it, without a store."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from ...catalogue.certificates import flat
from ...catalogue.instrument import FIRST
from ...catalogue.needs import ensure_asked
from ...catalogue.questions import questions_with
from ...catalogue.study import Catalogue, Study
from ...contracts import PROMPT_KEY, Stage, Trial, Unreadable
from ...contracts.adapter import ModelAdapter
from ...contracts.canonical import encode, encode_response, identity_digest, question_of, request_key
from ...contracts.cells import ClosedForm, ComputedResponses, LocatedRequests
from ...contracts.errors import DataError, ModelError
from ...contracts.estimates import Estimate
from ...contracts.records import AnyRequest, AnyResponse
from ...engine.observations import TRIALS, gather_observations, stack, with_responses
from ...engine.reading import as_read, read_answer
from ...pictures.shown import ShownPictures
from ...scoring.worded import described
from ...store.bulk import batched
from .brief import Brief

WINDOW = 4096
"""Trials that are asked together, the shortest first, as a run asks them."""
_HERE = b"calibration"
TINY = 1e-12
"""Relative difference of equal numbers."""


class Sent(NamedTuple):
    """A request, with its key and its size in bytes."""

    key: bytes
    request: AnyRequest
    size: int

    @classmethod
    def of(cls, request: AnyRequest) -> Sent:
        """Return a request with what is known of it."""
        encoded = encode(request)
        return cls(request_key(_HERE, encoded), request, len(encoded))


class Asked(NamedTuple):
    """A trial with its factors, encoded, and its request."""

    trial: Trial
    factors: str
    sent: Sent
    question: bytes
    """The request that all samples of the prompt share, encoded."""

    @classmethod
    def of(cls, trial: Trial) -> Asked:
        """Return a trial with what is known of it."""
        question = encode(question_of(trial.request))
        return cls(trial, encode(trial.factors).decode(), Sent.of(trial.request), question)


class Bench:
    """A study over many models, one after another; what does not depend on answers is prepared once."""

    def __init__(self, catalogue: Catalogue, study: Study, counted: Collection[str] | None = None) -> None:
        """Load the study's probe and metrics; nothing is asked.

        Args:
            catalogue: where the study is.
            study: the study.
            counted: measures that are made besides those with a verdict; None: all of the headline.
        """
        self.catalogue, self.study = catalogue, study
        self.instrument = catalogue.instrument(study)
        self._questions = questions_with(study.questions, flat(self.instrument.every_option))
        self._metrics = [
            (metric.every_stage, Brief(metric, options, self._questions, counted))
            for metric, options in self.instrument.metrics.values()
        ]
        self.requests = 0
        """Requests to models so far."""
        self._blobs: dict[str, bytes] = {}
        self._shown = ShownPictures(self._blob, self._keep)
        self._read: pl.DataFrame | None = None
        self._copies: Copies | None = None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages that have a model."""
        return tuple(self.instrument.stages())

    @cached_property
    def first(self) -> list[Asked]:
        """Return the trials of the first stage, which depend on no answer.

        Raises:
            DataError: there is none.
        """
        for stage in self.stages:
            for data, media_type in stage.images():
                self._keep(data, media_type)
        asked = [Asked.of(trial) for trial in self.stages[0].trials({})]
        ensure_asked(self.study, self.stages[0], len(asked))
        return asked

    async def observe(self, models: Mapping[str, ModelAdapter]) -> dict[str, pl.DataFrame]:
        """Return the observations of each stage.

        Args:
            models: a model for every role.
        """
        earlier: dict[str, pl.DataFrame] = {}
        self.instrument.place(models)
        for place, stage in enumerate(self.stages):
            asked = self.first if place == 0 else [Asked.of(trial) for trial in stage.trials(earlier)]
            model = models[stage.role]
            model.services = msgspec.structs.replace(model.services, blobs=self._shown.get, keep=self._keep)
            frame = self._computed(stage, model) if place == 0 else None
            earlier[stage.name] = await self._stage(stage, model, asked) if frame is None else frame
            if place == 0 and self._read is None:
                self._read = _all_read(earlier[stage.name])
        return earlier

    def is_computed(self, model: ModelAdapter) -> bool:
        """Return whether a model's answers to the first stage are computed, from the second study on."""
        self.instrument.place({self.stages[0].role: model})
        return self._repeatable and self._in_closed_form(model) is not None

    def _in_closed_form(self, model: ModelAdapter) -> ComputedResponses | None:
        return model.in_closed_form(self._located) if isinstance(model, ClosedForm) else None

    @cached_property
    def _repeatable(self) -> bool:
        """Return whether the trials of all studies are read alike: a declared stage, asked once and not reviewed."""
        stage, designed = self.stages[0], self.instrument.designed
        reviewed = type(stage).review is not Stage.review or self.instrument.needs_reasoning
        named = designed is not None and designed.located is not None and designed.name == stage.name
        return named and stage.rules.attempts == 1 and not reviewed

    @cached_property
    def _located(self) -> LocatedRequests:
        """Return the requests of the first stage with the cells of its design."""
        designed = self.instrument.designed
        assert designed is not None and designed.located is not None
        return LocatedRequests(designed.located, [asked.sent.request for asked in self.first])

    def _computed(self, stage: Stage, model: ModelAdapter) -> pl.DataFrame | None:
        """Return the observations of a model in closed form, after a study of which everything was read; else None."""
        if self._read is None or not self._repeatable:
            return None
        computed = self._in_closed_form(model)
        if computed is None:
            return None
        if self._copies is not None and computed.numbers is not None:
            return self._read.with_columns(self._copies.columns(computed.numbers))
        factors = [asked.trial.factors for asked in self.first]
        frame = with_responses(stage, self._read, factors, computed.responses)
        if frame is not None and computed.numbers is not None:
            self._copies = Copies.of(frame.select(stage.outcomes), self._read, computed.numbers)
        return frame

    def estimates(self, observations: Mapping[str, pl.DataFrame]) -> list[Estimate]:
        """Return every estimate of a study's metrics, with verdicts, as a run reports them."""
        last = list(observations.values())[-1]
        found = []
        for metric, options in self.instrument.metrics.values():
            seen = stack(observations) if metric.every_stage else last
            estimates = metric.compute(seen, options)
            found += [described(estimate, metric, options, self._questions) for estimate in estimates]
        return found

    def measure(self, observations: Mapping[str, pl.DataFrame], *, check: bool | None = True) -> tuple[Estimate, ...]:
        """Return the headline of a study's metrics, with verdicts, as a run reports it.

        Args:
            observations: by stage.
            check: whether to make every estimate, and to see whether the headline can be had without the others; None:
                every estimate is made, and nothing else is tried.
        """
        last = list(observations.values())[-1]
        whole = stack(observations) if any(every for every, _ in self._metrics) else last
        found = (own.headline(whole if every else last, check=check) for every, own in self._metrics)
        return tuple(estimate for own in found for estimate in own)

    async def _stage(self, stage: Stage, model: ModelAdapter, asked: Sequence[Asked]) -> pl.DataFrame:
        rows: list[tuple[str, str, bytes, str | None, str | None]] = []
        failures: dict[bytes, str] = {}
        firsts: dict[bytes, str] = {}
        for window in batched(asked, WINDOW):
            sent = [one.sent for one in window]
            answers = await self._answers(model, sent)
            begun = dict(answers)
            for attempt in range(1, stage.rules.attempts):
                again = [n for n, one in enumerate(window) if _asks_again(stage, one, answers[sent[n].key])]
                if not again:
                    break
                for place in again:
                    sent[place] = Sent.of(msgspec.structs.replace(window[place].trial.request, attempt=attempt))
                answers |= await self._answers(model, [sent[place] for place in again])
            for one, last in zip(window, sent, strict=True):
                key, answer, before = last.key, answers[last.key], begun[one.sent.key]
                if isinstance(answer, ModelError):
                    failures[key] = str(answer)
                    rows.append((one.trial.id, one.factors, key, None, None))
                else:
                    rows.append((one.trial.id, one.factors, key, answer.status, encode_response(answer).decode()))
                firsts[key] = "failed" if isinstance(before, ModelError) else as_read(before).status
        frame = pl.DataFrame(rows, schema=TRIALS, orient="row")
        # Prompts are clusters, which are resampled in the order of their keys: those of a run of this model.
        identity = identity_digest(model.identity)
        prompts = {one.sent.key: request_key(identity, one.question) for one in asked}
        reasoning = self.instrument.needs_reasoning
        return gather_observations(
            stage,
            [frame],
            failures,
            self._blob,
            earlier=firsts,
            prompts=prompts,
            reasoning=reasoning,
            design=self.instrument.design,
        )

    async def _answers(self, model: ModelAdapter, sent: Iterable[Sent]) -> dict[bytes, AnyResponse | ModelError]:
        requests = {one.key: one for one in sent}
        self.requests += len(requests)
        found: dict[bytes, AnyResponse | ModelError] = {}
        for batch in batched(sorted(requests.values(), key=lambda one: one.size), model.limits.batch_items):
            answers = await model.answer([one.request for one in batch])
            found.update(zip((one.key for one in batch), answers, strict=True))
        return found

    def _blob(self, name: str) -> bytes:
        try:
            return self._blobs[name]
        except KeyError:
            raise DataError(f"there is no image {name}.", code="store.no-image") from None

    def _keep(self, data: bytes, media_type: str) -> str:
        name = hashlib.sha256(data).hexdigest()
        self._blobs[name] = data
        return name


class Copies(NamedTuple):
    """How a stage reads responses that are numbers: outcomes that are one of these, or say which is the largest."""

    copied: dict[str, int]
    """The number that an outcome is."""
    largest: dict[str, pl.Series]
    """What an outcome is by the place of the largest number."""

    @classmethod
    def of(cls, outcomes: pl.DataFrame, others: pl.DataFrame, numbers: npt.NDArray[np.float64]) -> Copies | None:
        """Return how outcomes of a whole study follow from its numbers; None where one does not.

        Args:
            outcomes: as read.
            others: those of another study, with which what does not depend on answers is equal.
            numbers: of the responses, shape (rows, numbers).
        """
        copied: dict[str, int] = {}
        largest: dict[str, pl.Series] = {}
        place = pl.Series("place", numbers.argmax(axis=1))
        for outcome in outcomes:
            if outcome.equals(others[outcome.name]):
                continue
            if outcome.dtype.is_float():
                same = [at for at, column in enumerate(numbers.T) if np.allclose(outcome, column, rtol=TINY, atol=0)]
                if not same:
                    return None
                copied[outcome.name] = same[0]
            else:
                by_place = pl.DataFrame([place, outcome]).unique().sort("place")
                if by_place["place"].to_list() != [*range(numbers.shape[1])]:
                    return None
                largest[outcome.name] = by_place[outcome.name]
        return cls(copied, largest)

    def columns(self, numbers: npt.NDArray[np.float64]) -> list[pl.Series]:
        """Return the outcomes of the responses that have these numbers."""
        place = pl.Series(numbers.argmax(axis=1))
        columns = [pl.Series(name, np.ascontiguousarray(numbers[:, at])) for name, at in self.copied.items()]
        return columns + [levels.gather(place).alias(name) for name, levels in self.largest.items()]


def _all_read(observations: pl.DataFrame) -> pl.DataFrame | None:
    """Return observations of which every answer was read, and that are no samples of prompts; else None."""
    plain = PROMPT_KEY not in observations.columns and FIRST not in observations.columns
    return observations if plain and (observations["status"] == "ok").all() else None


def _asks_again(stage: Stage, one: Asked, answer: AnyResponse | ModelError) -> bool:
    """Return whether a run would ask again: the stage does so for this status, and nothing can be read."""
    if isinstance(answer, ModelError) or as_read(answer).status not in ("ok", *stage.rules.again):
        return False
    found = read_answer(stage, one.trial.factors, answer)
    return "unreadable" in stage.rules.again if isinstance(found, Unreadable) else found is None
