"""Fair models that prefer levels of what a declared study samples: one for each facet, part, and pair of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import msgspec

from ...catalogue.study import SUBJECT, Catalogue
from ...contracts.errors import DataError
from ...design import AnswerForm, Facet, Preference
from .gallery import MARK, Null

SPREAD = 0.5
"""Standard deviation of each preference, in nats."""
EACH = 2
"""Studies of each such model that are made by the command line too."""


def expanded(
    gallery: Mapping[str, Null], catalogue: Catalogue, study: str, options: Mapping[str, Any]
) -> dict[str, Null]:
    """Return a gallery in which each model that can be given preferences is one for each choice of what it prefers.

    Such a model is left out where the study declares no design with an answer form in which a preference can show, or
    needs a file that is not given.

    Args:
        gallery: The models by name.
        catalogue: Where the study is.
        study: Its name.
        options: Options beside those of its stated design.
    """
    if not any(null.preferring for null in gallery.values()):
        return dict(gallery)
    facets = _facets(catalogue, study, options)
    nulls: dict[str, Null] = {}
    for name, null in gallery.items():
        if null.preferring:
            nulls |= {f"{name}{MARK}{of}": _preferring(null, of, chosen) for of, chosen in choices(facets)}
        else:
            nulls[name] = null
    return nulls


def choices(facets: tuple[Facet, ...]) -> Iterator[tuple[str, tuple[Preference, ...]]]:
    """Yield what is preferred, each with its name: every facet, every pair, and two pairs that do not add up.

    Each preference is drawn anew in each context, and for each group by the same law.
    """
    names = [facet.name for facet in facets]
    for name in names:
        yield name, (_one(name),)
    for pair in combinations(names, 2):
        yield " and ".join(pair), tuple(map(_one, pair))
    outer = [facet.name for facet in facets if not facet.nested_in]
    crossed = tuple((outer if len(outer) > 1 else names)[:2])
    if len(crossed) == 2:
        yield " with ".join(crossed), (Preference(crossed, SPREAD, by_context=True),)
        yield " times ".join(crossed), (Preference(crossed, SPREAD, by_context=True, product=True),)


def _one(name: str) -> Preference:
    return Preference((name,), SPREAD, by_context=True)


def _facets(catalogue: Catalogue, study: str, options: Mapping[str, Any]) -> tuple[Facet, ...]:
    name = catalogue.adopt(study)
    entry = catalogue.registry.study(name)
    roles = {SUBJECT: catalogue.registry.defaults["calibrate"]} | entry.calibration.roles
    try:
        instrument = catalogue.instrument(catalogue.study(name, roles, entry.calibration.options | dict(options)))
    except DataError:
        # A study of the user's data has none yet: its file is written for each campaign.
        return ()
    design = instrument.design
    if design is None or design.answer is None or instrument.designed is None or not _can_be_planted(design.answer):
        return ()
    return tuple(facet for facet in design.facets() if facet.levels > 1)


def _can_be_planted(form: AnswerForm) -> bool:
    """Return whether a preference shows in answers of this form: not in free words, pictures and vectors."""
    return bool(form.answers) or form.form not in ("words", "image", "vector")


def _preferring(null: Null, of: str, preferences: tuple[Preference, ...]) -> Null:
    # As a record of studies has them, with which they are compared when it is taken up again.
    settings = null.settings | {null.preferring: msgspec.json.decode(msgspec.json.encode(preferences))}
    return msgspec.structs.replace(null, settings=settings, meaning=f"{null.meaning} Here: {of}.")
