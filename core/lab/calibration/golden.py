"""The golden file of a study is computed: from stored responses to estimates, for every case of its options."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import polars as pl

from ...catalogue.golden import STATED, Head, rounded, used_of_battery
from ...catalogue.study import SUBJECT, Study
from ...contracts.adapter import Identity, ModelAdapter
from ...contracts.canonical import encode, question_of
from ...contracts.errors import DataError, PrejudgeError
from ...contracts.estimates import Estimate
from ...contracts.version import VERSION
from .bench import Bench
from .campaign import Campaign
from .cases import Case, cases_of
from .certify import Recipe
from .gallery import FAIR
from .golden_file import Computed, Golden, Rows, digests_of
from .real import write_data
from .replay import Replay

PLANTED = 1.0
"""Bias of the model whose responses are stored, where the study can plant one."""
READ = ("status", "reason", "first")
"""Columns of what is read of an answer, besides its outcomes."""
DATA = "data"
"""Option of a probe that names its items."""
NAMES = ("interval", "test", "effect_name")
"""Fields of an estimate that name what the house of statistics computes."""


def compute(campaign: Campaign, before: Golden | None = None, *, ask: bool = True) -> Golden:
    """Return the golden file of a study as its code is now.

    Args:
        campaign: the calibration whose stated options it has.
        before: the file that there is, whose responses are used as far as the questions are the same.
        ask: whether models are asked for what no stored response answers; else such a request fails.
    """
    return _Computation(campaign, before, ask).golden()


@contextmanager
def stated_campaign(recipe: Recipe) -> Iterator[Campaign]:
    """Give the campaign whose golden file a study has.

    Data that the study does not include are written by the function that its `[calibration.trained]` names, so that
    the file can be computed without those of a user.
    """
    catalogue = recipe.catalogue()
    writer = catalogue.registry.study(catalogue.adopt(recipe.study)).calibration.trained.data
    if not writer or (DATA not in recipe.assignments and _has_data(recipe)):
        yield recipe.campaign()
        return
    with TemporaryDirectory() as folder:
        path = write_data(writer, 1, Path(folder) / "data.csv")
        yield msgspec.structs.replace(recipe, assignments=recipe.assignments | {DATA: str(path)}).campaign()


def _has_data(recipe: Recipe) -> bool:
    try:
        recipe.campaign()
    except DataError:
        return False
    return True


class _Computation:
    """The computation of a golden file: models and observations are shared by its cases."""

    def __init__(self, campaign: Campaign, before: Golden | None, ask: bool) -> None:
        self._campaign, self._before, self._ask = campaign, before, ask
        self._models: dict[str, Replay] = {}
        self._observations: dict[bytes, dict[str, pl.DataFrame]] = {}

    def golden(self) -> Golden:
        """Compute every case."""
        every = (self._first_possible(cases) for cases in cases_of(self._campaign))
        cases = {computed.case.name: computed for computed in every if computed is not None}
        rows = (row for computed in cases.values() for row in computed.estimates.values())
        head = Head(
            study=self._campaign.study.name,
            prejudge=VERSION,
            questions=_digest_of_questions(self._campaign.bench, self._observe(self._campaign.bench)),
            cases=digests_of(cases),
            battery=used_of_battery(row[field] for row in rows for field in NAMES if row.get(field)),
            reason="" if self._before is None else self._before.head.reason,
        )
        identities = {key: model.identity for key, model in self._models.items()}
        responses = {key: dict(model.used) for key, model in self._models.items()}
        return Golden(head, identities, responses, cases, sum(model.unknown for model in self._models.values()))

    def _first_possible(self, cases: Sequence[Case]) -> Computed | None:
        """Compute the first case whose options the study takes; None if it takes those of none."""
        for case in cases:
            try:
                return self._computed(case)
            except (PrejudgeError, ValueError):
                if case.name == STATED:
                    raise
        return None

    def _computed(self, case: Case) -> Computed:
        bench = self._bench(case)
        observations = self._observe(bench)
        estimates = bench.estimates(observations)
        return Computed(case, _by_key(_readings(bench, observations)), _by_key(map(_flat, estimates)))

    def _bench(self, case: Case) -> Bench:
        if case.name == STATED:
            return self._campaign.bench
        return Bench(self._campaign.catalogue, self._campaign.with_options(case.options, case.roles))

    def _observe(self, bench: Bench) -> dict[str, pl.DataFrame]:
        asked = msgspec.json.encode((bench.study.options, bench.study.roles, bench.study.limit))
        if asked not in self._observations:
            models = {role: self._model(bench.study, role) for role in bench.study.roles}
            self._observations[asked] = asyncio.run(bench.observe(models))
        return self._observations[asked]

    def _model(self, study: Study, role: str) -> ModelAdapter:
        key = f"{role}={study.roles[role]}"
        if key not in self._models:
            stored = {} if self._before is None else self._before.responses.get(key, {})
            behind = self._behind(study.roles[role], role) if self._ask else None
            identity = self._identity(key) or (behind.identity if behind is not None else _NOBODY)
            self._models[key] = Replay(identity, stored, behind)
        return self._models[key]

    def _identity(self, key: str) -> Identity | None:
        return None if self._before is None else self._before.identities.get(key)

    def _behind(self, name: str, role: str) -> ModelAdapter:
        if role == SUBJECT and name == self._campaign.stand_in:
            strength = PLANTED if self._campaign.planted else 0.0
            return self._campaign.model(self._campaign.gallery[FAIR], 0, strength)
        return self._campaign.other(name)


_NOBODY = Identity(adapter="golden", version="1", model="nobody")


def _digest_of_questions(bench: Bench, observations: Mapping[str, pl.DataFrame]) -> str:
    """Return the digest of every trial and its question."""
    digest = hashlib.sha256()
    earlier: dict[str, pl.DataFrame] = {}
    for stage in bench.stages:
        for trial in stage.trials(earlier):
            digest.update(f"{stage.name}\0{trial.id}\0".encode() + encode(question_of(trial.request)) + b"\n")
        earlier[stage.name] = observations[stage.name]
    return digest.hexdigest()[:32]


def _readings(bench: Bench, observations: Mapping[str, pl.DataFrame]) -> Iterator[dict[str, Any]]:
    for stage in bench.stages:
        frame = observations[stage.name]
        names = [name for name in (*READ, *stage.outcomes) if name in frame.columns]
        for row in frame.select("trial", *names).iter_rows(named=True):
            yield {"key": f"{stage.name}/{row.pop('trial')}"} | _known(row)


def _flat(estimate: Estimate) -> dict[str, Any]:
    row = msgspec.to_builtins(estimate.flat())
    return {"key": json.dumps([estimate.metric, row["group"]], sort_keys=True), "group": row["group"]} | _known(row)


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: rounded(value) for name, value in row.items() if value not in (None, "", {}, [], ())}


def _by_key(rows: Iterable[dict[str, Any]]) -> Rows:
    return {row.pop("key"): row for row in rows}
