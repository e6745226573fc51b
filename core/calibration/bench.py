"""`Bench`: a study that is asked, read and measured in memory, as a run does it, without a store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import polars as pl

from ..catalogue.study import Catalogue, Study
from ..contracts import Stage, Trial, Unreadable
from ..contracts.adapter import ModelAdapter, Services
from ..contracts.canonical import encode, encode_response, question_of, request_key
from ..contracts.errors import DataError, ModelError
from ..contracts.estimates import Estimate
from ..contracts.records import AnyRequest, AnyResponse
from ..engine.manifest import Manifest
from ..engine.observations import gather_observations, stack
from ..engine.reading import read_answer
from ..scoring.score import measure_frame
from ..store.bulk import batched

WINDOW = 4096
"""Trials that are asked together, the shortest first, as a run asks them."""
_HERE = b"calibration"
_COLUMNS = {"trial": pl.String, "factors": pl.String, "key": pl.Binary, "status": pl.String, "response": pl.String}


class Asked(NamedTuple):
    """A trial with its factors and request, encoded."""

    trial: Trial
    factors: str
    key: bytes
    prompt: bytes
    """Key that all samples of the prompt share."""


class Bench:
    """A study over many models, one after another; what does not depend on answers is prepared once."""

    def __init__(self, catalogue: Catalogue, study: Study) -> None:
        """Load the study's probe and metrics; nothing is asked."""
        self.catalogue, self.study = catalogue, study
        self.instrument = catalogue.instrument(study)
        every = self.instrument.every_option
        self.manifest = Manifest(run="calibration", study=study, identities={}, refusals="reader", options=every)
        self.requests = 0
        """Requests to models so far."""
        self._blobs: dict[str, bytes] = {}

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages that have a model."""
        return tuple(self.instrument.stages())

    @cached_property
    def first(self) -> list[Asked]:
        """Return the trials of the first stage, which depend on no answer."""
        for stage in self.stages:
            for data, media_type in stage.images():
                self._keep(data, media_type)
        return [_asked(trial) for trial in self.stages[0].trials({})]

    async def observe(self, models: Mapping[str, ModelAdapter]) -> dict[str, pl.DataFrame]:
        """Return the observations of each stage.

        Args:
            models: a model for every role.
        """
        earlier: dict[str, pl.DataFrame] = {}
        for place, stage in enumerate(self.stages):
            asked = self.first if place == 0 else [_asked(trial) for trial in stage.trials(earlier)]
            model = models[stage.role]
            model.bind(Services(blobs=self._blob, keep=self._keep))
            earlier[stage.name] = await self._stage(stage, model, asked)
        return earlier

    def measure(self, observations: Mapping[str, pl.DataFrame]) -> tuple[Estimate, ...]:
        """Return the headline of a study's metrics, with verdicts, as a run reports it."""
        frame = stack(observations) if len(observations) > 1 else next(iter(observations.values()))
        return measure_frame(self.catalogue, self.manifest, frame).headline

    async def _stage(self, stage: Stage, model: ModelAdapter, asked: Sequence[Asked]) -> pl.DataFrame:
        rows: list[tuple[str, str, bytes, str | None, str | None]] = []
        failures: dict[bytes, str] = {}
        firsts: dict[bytes, str] = {}
        for window in batched(asked, WINDOW):
            keys = [one.key for one in window]
            answers = await self._answers(model, {one.key: one.trial.request for one in window})
            begun = dict(answers)
            for attempt in range(1, stage.max_attempts):
                again = [n for n, one in enumerate(window) if _asks_again(stage, one, answers[keys[n]])]
                if not again:
                    break
                requests = {n: msgspec.structs.replace(window[n].trial.request, attempt=attempt) for n in again}
                for place in again:
                    keys[place] = _key(requests[place])
                answers |= await self._answers(model, {keys[n]: requests[n] for n in again})
            for one, key in zip(window, keys, strict=True):
                answer = answers[key]
                if isinstance(answer, ModelError):
                    failures[key] = str(answer)
                    rows.append((one.trial.id, one.factors, key, None, None))
                else:
                    rows.append((one.trial.id, one.factors, key, answer.status, encode_response(answer).decode()))
                before = begun[one.key]
                firsts[key] = "failed" if isinstance(before, ModelError) else before.status
        frame = pl.DataFrame(rows, schema=_COLUMNS, orient="row")
        prompts = {one.key: one.prompt for one in asked}
        return gather_observations(stage, [frame], failures, self._blob, earlier=firsts, prompts=prompts)

    async def _answers(
        self, model: ModelAdapter, requests: Mapping[bytes, AnyRequest]
    ) -> dict[bytes, AnyResponse | ModelError]:
        self.requests += len(requests)
        found: dict[bytes, AnyResponse | ModelError] = {}
        for batch in batched(sorted(requests.items(), key=_size), model.limits.batch_items):
            answers = await model.answer([request for _, request in batch])
            found.update(zip((key for key, _ in batch), answers, strict=True))
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


def _asked(trial: Trial) -> Asked:
    return Asked(trial, encode(trial.factors).decode(), _key(trial.request), _key(question_of(trial.request)))


def _key(request: AnyRequest) -> bytes:
    return request_key(_HERE, encode(request))


def _size(item: tuple[bytes, AnyRequest]) -> int:
    return len(encode(item[1]))


def _asks_again(stage: Stage, one: Asked, answer: AnyResponse | ModelError) -> bool:
    """Return whether a run would ask again: the stage does so for this status, and nothing can be read."""
    if isinstance(answer, ModelError) or answer.status not in ("ok", *stage.asks_again):
        return False
    found = read_answer(stage, one.trial.factors, answer)
    return "unreadable" in stage.asks_again if isinstance(found, Unreadable) else found is None
