"""Studies of trained reference models: one fixed model, and items that are drawn anew for each study.

A model of the gallery is another one in each study. A trained model stays the same, with all leans that it has to the
words at hand, so that its studies differ by the items that the probe draws (its option `seed`). Where a probe draws no
items every study would be the same: then there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..catalogue.certificates import Group
from ..catalogue.questions import Question
from ..catalogue.study import SUBJECT
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import ModelError
from ..contracts.records import AnyResponse
from .bench import Bench, Sent
from .campaign import Campaign, Cell, Done, Journal
from .rates import group_of

DRAWN_BY = "seed"
"""Option of a probe that draws items."""


class _Known(Bench):
    """A study of a model whose answers to earlier studies are known."""

    answers: dict[bytes, AnyResponse | ModelError]

    async def _answers(self, model: ModelAdapter, sent: Iterable[Sent]) -> dict[bytes, AnyResponse | ModelError]:
        wanted = list(sent)
        if new := [one for one in wanted if one.key not in self.answers]:
            self.answers |= await super()._answers(model, new)
        return {one.key: self.answers[one.key] for one in wanted}


class Trained:
    """A trained model, over all of its studies."""

    def __init__(self, campaign: Campaign, name: str) -> None:
        """Load the model."""
        self.campaign, self.name = campaign, name
        self.strength = campaign.entry.calibration.real.get(name, 0.0)
        self._models = {
            role: campaign.catalogue.adapter(name if role == SUBJECT else other)
            for role, other in campaign.study.roles.items()
        }
        self._answers: dict[bytes, AnyResponse | ModelError] = {}

    def one(self, seed: int) -> Done:
        """Ask, read and measure one study, whose items are drawn by this seed."""
        study = self.campaign.study
        items = {DRAWN_BY: seed} if draws_items(self.campaign) else {}
        drawn = msgspec.structs.replace(study, options={**study.options, **items})
        bench = _Known(self.campaign.catalogue, drawn)
        bench.answers = self._answers
        return self.campaign.measured(bench, self._models, self.name, seed, self.strength)


def draws_items(campaign: Campaign) -> bool:
    """Return whether the probe draws items by a seed, so that studies of one model differ."""
    return DRAWN_BY in campaign.bench.instrument.options.__struct_fields__


def conduct_real(campaign: Campaign, journal: Journal, studies: int) -> Iterator[Done]:
    """Make the studies of the trained models that are not done, record each, and yield it."""
    studies = studies if draws_items(campaign) else min(studies, 1)
    for name, strength in campaign.entry.calibration.real.items():
        left = [seed for seed in range(studies) if (name, strength, seed) not in journal.done]
        trained = Trained(campaign, name) if left else None
        for seed in left:
            assert trained is not None
            journal.add(done := trained.one(seed))
            yield done


def real_groups(campaign: Campaign, journal: Journal, questions: Sequence[Question], studies: int) -> tuple[Group, ...]:
    """Return the rates of the trained models."""
    cells = [Cell(name, strength, studies) for name, strength in campaign.entry.calibration.real.items()]
    found = [(cell, journal.of(cell)) for cell in cells]
    return tuple(group_of(cell, done, questions) for cell, done in found if done)
