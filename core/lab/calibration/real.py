"""Studies of trained reference models: one fixed model, and items or answers that are drawn anew for each study.

A model of the gallery is another one in each study. A trained model stays the same, with all leans that it has to the
words at hand, so that its studies differ by the items that are drawn (the probe's option `seed`, or a file of data that
is written for each study), and by its draws where it is asked with a temperature. Where nothing is drawn every study
would be the same: then there is one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory

import msgspec

from ...catalogue.certificate_records import Group
from ...catalogue.questions import Question
from ...catalogue.study import SUBJECT, Study
from ...contracts.adapter import ModelAdapter
from ...contracts.errors import ModelError, ModelLoadError, PluginError
from ...contracts.records import AnyRequest, AnyResponse, Drawing, Generate
from .bench import Bench, Sent
from .campaign import Campaign, Cell, Done, Journal
from .rates import group_of

LOG = logging.getLogger(__name__)
DRAWN_BY = "seed"
"""Option of a probe that draws items."""
APART = 1_000_000
"""The first number of a sample in one study less that in the study before."""


class _Known(Bench):
    """A study of a model whose answers to earlier studies are known."""

    answers: dict[bytes, AnyResponse | ModelError]
    first_sample = 0

    async def _answers(self, model: ModelAdapter, sent: Iterable[Sent]) -> dict[bytes, AnyResponse | ModelError]:
        wanted = {one.key: self._own(one) for one in sent}
        if new := [one for one in wanted.values() if one.key not in self.answers]:
            self.answers |= await super()._answers(model, new)
        found = {key: self.answers[one.key] for key, one in wanted.items()}
        for one in wanted.values():
            if isinstance(self.answers[one.key], Drawing):
                del self.answers[one.key]  # its pictures are kept by this study alone
        return found

    def _own(self, one: Sent) -> Sent:
        """Return a request of which this study has draws of its own."""
        if not (self.first_sample and draws(one.request)):
            return one
        assert isinstance(one.request, Generate)
        return Sent.of(msgspec.structs.replace(one.request, sample=one.request.sample + self.first_sample))


def draws(request: AnyRequest) -> bool:
    """Return whether repeats of a request are draws, which differ."""
    return isinstance(request, Generate) and bool(request.sampling.temperature)


class Trained:
    """A trained model, over all of its studies."""

    def __init__(self, campaign: Campaign, name: str) -> None:
        """Load the model."""
        self.campaign, self.name = campaign, name
        own = campaign.entry.calibration
        self.strength = own.real.get(name, 0.0)
        self._models = {
            role: campaign.catalogue.adapter(name) if role == SUBJECT else campaign.other(other)
            for role, other in (campaign.study.roles | own.trained.roles).items()
        }
        self._answers: dict[bytes, AnyResponse | ModelError] = {}

    def one(self, seed: int) -> Done:
        """Ask, read and measure one study, whose items and answers are drawn by this seed."""
        with TemporaryDirectory() as folder:
            bench = _Known(self.campaign.catalogue, self._study(seed, Path(folder)))
            bench.answers, bench.first_sample = self._answers, seed * APART
            return self.campaign.measured(bench, self._models, self.name, seed, self.strength)

    def _study(self, seed: int, folder: Path) -> Study:
        own = self.campaign.entry.calibration.trained
        given = dict(own.options)
        if draws_items(self.campaign):
            given[DRAWN_BY] = seed
        if own.data:
            given["data"] = str(write_data(own.data, seed, folder / "data.csv"))
        return self.campaign.with_options(given, own.roles)


def write_data(target: str, seed: int, path: Path) -> Path:
    """Write the data of a study by a function of its package, and return their path.

    Raises:
        PluginError: there is no such function.
    """
    try:
        resolve_name(target)(seed, path)
    except (ImportError, AttributeError, ValueError) as error:
        raise PluginError(target, f"it does not write data of a study: {error}", code="calibration.data") from error
    return path


def draws_items(campaign: Campaign) -> bool:
    """Return whether the probe draws items by a seed, so that studies of one model differ."""
    return DRAWN_BY in campaign.bench.instrument.options.__struct_fields__


def vary(campaign: Campaign) -> bool:
    """Return whether studies of one trained model differ."""
    own = campaign.entry.calibration.trained
    if own.data or draws_items(campaign):
        return True
    bench = Bench(campaign.catalogue, campaign.with_options(own.options, own.roles))
    return any(draws(one.sent.request) for one in bench.first)


def conduct_real(campaign: Campaign, journal: Journal, studies: int) -> Iterator[Done]:
    """Make the studies of the trained models that are not done, record each, and yield it."""
    studies = studies if vary(campaign) else min(studies, 1)
    for name, strength in campaign.entry.calibration.real.items():
        pending = [seed for seed in range(studies) if (name, strength, seed) not in journal.done]
        if not pending or (trained := _trained(campaign, name)) is None:
            continue
        for seed in pending:
            journal.add(done := trained.one(seed))
            yield done


def _trained(campaign: Campaign, name: str) -> Trained | None:
    """Return the studies of a trained model; None, with a warning, where its trainer is not installed."""
    try:
        return Trained(campaign, name)
    except ModelLoadError as error:
        if error.code != "model.no-trainer":
            raise
        LOG.warning("%s Its studies are left out.", error)
        return None


def real_groups(campaign: Campaign, journal: Journal, questions: Sequence[Question], studies: int) -> tuple[Group, ...]:
    """Return the rates of the trained models."""
    cells = [Cell(name, strength, studies) for name, strength in campaign.entry.calibration.real.items()]
    found = [(cell, journal.of(cell)) for cell in cells]
    return tuple(group_of(cell, done, questions) for cell, done in found if done)
