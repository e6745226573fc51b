"""From a campaign to a certificate: which studies are made, in how many processes, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ...catalogue.certificate_records import Certificate
from ...catalogue.certificates import flat
from ...catalogue.filed import find_certificates
from ...catalogue.golden import Head, digest_of
from ...catalogue.questions import Question, questions_of
from ...catalogue.study import SUBJECT, Catalogue
from ...contracts.errors import UsageError
from ...contracts.processes import ProcessPool, start_helpers
from ...contracts.version import VERSION
from ...engine.manifest import digest_data, digest_files
from .adversaries import EACH, expanded
from .by_command import differing
from .campaign import COMPARED, Campaign, Cell, Done, Journal, cells_of, pending
from .gallery import FAIR, Null, is_preferring, load_gallery
from .rates import group_of, sensitivities
from .real import real_groups
from .spots import spots_of

STRENGTHS = (0.25, 0.5, 1.0, 2.0)
"""Biases that are planted, beside none."""


class Recipe(msgspec.Struct, frozen=True):
    """What a process needs to make the campaign."""

    study: str
    assignments: dict[str, Any]
    gallery: dict[str, Null]
    registry: str | None = None

    @classmethod
    def load(
        cls, study: str, assignments: Mapping[str, Any], registry: str | None = None, gallery: str | None = None
    ) -> Recipe:
        """Return the recipe of a study with its gallery, and the models of a file behind it.

        Raises:
            DataError: the file cannot be used.
            UsageError: the study has no gallery.
        """
        catalogue = Catalogue.load(registry)
        nulls = expanded(load_gallery(catalogue, study, gallery), catalogue, study, assignments)
        return cls(study, dict(assignments), nulls, registry)

    def catalogue(self) -> Catalogue:
        """Return the catalogue with the registry that was named."""
        return Catalogue.load(self.registry)

    def campaign(self) -> Campaign:
        """Return the campaign."""
        return Campaign(self.catalogue(), self.study, self.assignments, self.gallery)


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How many studies are made."""

    studies: int = 1000
    """Of each fair model."""
    planted: int = 200
    """Of each planted bias."""
    preferring: int = 200
    """Of each fair model that prefers levels of what the study samples."""
    planted_in: tuple[str, ...] = ()
    """Fair models besides `fair` in which biases are planted too."""
    real: int = 200
    """Of each trained model that the study names."""
    jobs: int = 1
    """Processes at once."""


class Checked(msgspec.Struct, frozen=True):
    """Studies that were also made by the command line."""

    studies: int
    differing: dict[str, str]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a calibration will do."""

    cells: tuple[Cell, ...]
    unchanged: tuple[str, ...]
    """Models of the gallery that do not change what the study finds in `fair`."""
    requests: int
    """Of one study."""
    seconds: float
    """Processor time of one study."""


def plan_of(campaign: Campaign, journal: Journal, size: Size) -> Plan:
    """Try every model of the gallery twice, and return what is worth asking."""
    campaign.one(FAIR, 0)  # the first one makes more than any other, and warms what is kept
    requests = campaign.bench.requests
    seconds = campaign.one(FAIR, 1).seconds
    unchanged = tuple(null for null in campaign.gallery if null != FAIR and not journal.touches(campaign, null))
    left = [null for null in campaign.gallery if null not in unchanged and not is_preferring(null)]
    preferring = [null for null in campaign.gallery if null not in unchanged and is_preferring(null)]
    biased = [null for null in left if null in (FAIR, *size.planted_in)] if campaign.planted and size.planted else []
    cells = (
        cells_of(left, (), size.studies, 0)
        + cells_of(preferring, (), size.preferring, 0)
        + [cell for cell in cells_of(biased, STRENGTHS, size.studies, size.planted) if cell.strength]
    )
    return Plan(cells=tuple(cells), unchanged=unchanged, requests=requests, seconds=seconds)


def conduct(recipe: Recipe, campaign: Campaign, journal: Journal, plan: Plan, jobs: int) -> Iterator[Done]:
    """Make every study that is not done, record it, and yield it."""
    todo = list(pending(journal, plan.cells))
    for done in _studies(recipe, campaign, todo, jobs):
        journal.add(done)
        yield done


def check(recipe: Recipe, campaign: Campaign, studies: int) -> Checked:
    """Make the first studies of `fair`, and of each model that prefers levels, by the command line too, and compare."""
    models = [(FAIR, seed) for seed in range(studies)]
    models += [(null, seed) for null in campaign.gallery if is_preferring(null) for seed in range(min(EACH, studies))]
    differences = differing(campaign, recipe.study, models, recipe.registry)
    return Checked(len(models), differences)


def certificate_of(
    campaign: Campaign, journal: Journal, plan: Plan, head: Head, checked: Checked, real: int = 0
) -> Certificate:
    """Return the certificate of the studies that are done."""
    questions = asked_of(campaign, [one for cell in plan.cells for one in journal.of(cell)[:1]])
    groups = [group_of(cell, journal.of(cell), questions) for cell in plan.cells]
    tried = [Cell(null, 0.0, len(COMPARED)) for null in plan.unchanged]
    groups += [group_of(cell, journal.of(cell), unchanged=True) for cell in tried]
    return Certificate(
        study=campaign.study.name,
        prejudge=VERSION,
        made=f"{datetime.now(UTC):%Y-%m-%d}",
        design=design_of(campaign),
        options=options_of(campaign),
        sizes=sizes_of(campaign),
        requests=plan.requests,
        entire=0 if campaign.entire is campaign else len(campaign.entire.bench.first),
        data=data_digests(campaign),
        questions=head.questions,
        numbers=head.cases,
        battery=head.battery,
        gallery_digest=digest_of_gallery(campaign),
        spots=spots_of(campaign, journal),
        gallery={name: null.settings | null.roles for name, null in campaign.gallery.items()},
        meanings={name: null.meaning for name, null in campaign.gallery.items()},
        planted=campaign.planted,
        groups=tuple(groups),
        sensitivity=sensitivities(groups, campaign.gallery),
        real=real_groups(campaign, journal, questions, real),
        seconds=sum(one.seconds for one in journal.done.values()),
        by_command=checked.studies,
        differing=checked.differing,
    )


def present_certificate(campaign: Campaign, head: Head) -> Certificate:
    """Return the certificate that the study has of this design, with these numbers and data.

    Raises:
        UsageError: it has none.
    """
    wanted = _written(bound(campaign, head), design_of(campaign), options_of(campaign))
    for one in find_certificates(campaign.catalogue, campaign.study.name, campaign.study.probe):
        names = {"questions": one.questions, "numbers": digest_of(one.numbers)} | one.data
        if _written(names, one.design, one.options) == wanted:
            return one
    raise UsageError(
        f"{campaign.study.name!r} has no certificate of this design, with these numbers and data. Make it without "
        "--trained-only",
        code="calibration.none",
    )


def with_trained(before: Certificate, campaign: Campaign, journal: Journal, real: int) -> Certificate:
    """Return a certificate with the recorded studies of trained models in place of those that it had."""
    found = real_groups(campaign, journal, asked_of(campaign, list(journal.done.values())[:1]), real)
    seconds = sum(one.seconds for one in journal.done.values())
    return msgspec.structs.replace(before, real=found, seconds=before.seconds + seconds)


def _written(*parts: dict[str, Any]) -> bytes:
    """Return parts of a certificate as its file has them, where tuples are lists."""
    return msgspec.json.encode(parts, order="deterministic")


def asked_of(campaign: Campaign, done: Sequence[Done]) -> Sequence[Question]:
    """Return the questions that the study answers."""
    judged = next((n.measure for one in done for n in one.numbers if n.shown is not None), "")
    options = flat(campaign.bench.instrument.every_option)
    return questions_of(campaign.study.questions, options, campaign.study.summary, judged)


def data_digests(campaign: Campaign) -> dict[str, str]:
    """Return the sha256 of the files that the options of a study name, by name."""
    instrument = campaign.bench.instrument
    data = digest_data(msgspec.structs.asdict(instrument.options)) | digest_files(instrument.files())
    return {Path(path).name: digest for path, digest in data.items()}


def bound(campaign: Campaign, head: Head) -> dict[str, str]:
    """Return digests of what a study asks, computes and reads: with others, its recorded studies are not its own."""
    return {"questions": head.questions, "numbers": head.digest} | data_digests(campaign)


def digest_of_gallery(campaign: Campaign) -> str:
    """Return the digest of the models of the gallery; what they are said to mean does not count."""
    models = {}
    for name, null in campaign.gallery.items():
        if not null.preferring or is_preferring(name):
            models[name] = msgspec.structs.asdict(null) | {"meaning": ""}
            del models[name]["preferring"]
    return digest_of(msgspec.to_builtins(models))


def sizes_of(campaign: Campaign) -> tuple[str, ...]:
    """Return the options that say how much is asked: those that the stated design sets to numbers or lists."""
    own = campaign.entry.calibration
    numbers = [n for n, v in own.options.items() if isinstance(v, int | float | list) and not isinstance(v, bool)]
    return tuple(sorted({*numbers, *own.sizes}))


def options_of(campaign: Campaign) -> dict[str, Any]:
    """Return every option of a study, with names of files for their paths, which are of this machine."""
    given = flat(campaign.bench.instrument.every_option)
    return {name: Path(one).name if name.rpartition(".")[2] == "data" and one else one for name, one in given.items()}


def design_of(campaign: Campaign) -> dict[str, Any]:
    """Return the options of a calibrated study that are set, and the models of its other roles."""
    study = campaign.study
    metrics = {f"{name}.{key}": value for name, own in study.metrics.items() for key, value in own.items()}
    roles = {f"model of {role}": name for role, name in study.roles.items() if role != SUBJECT}
    # A path is of this machine: the digests name the file.
    made = {name: value for name, value in study.options.items() if name != "data"}
    return made | metrics | roles


def _studies(recipe: Recipe, campaign: Campaign, cells: Sequence[tuple[str, float, int]], jobs: int) -> Iterator[Done]:
    with start_helpers(min(jobs, len(cells)) - 1, _opened, recipe) as helpers:
        yield from ProcessPool(helpers, (campaign,)).map(Campaign.one, _in_order(cells))


def _in_order(cells: Sequence[tuple[str, float, int]]) -> Iterator[tuple[str, int, float]]:
    """Yield null, seed and strength of each study."""
    return ((null, seed, strength) for null, strength, seed in cells)


@contextmanager
def _opened(recipe: Recipe) -> Iterator[tuple[Campaign]]:
    yield (recipe.campaign(),)
