"""Data of studies of trained models: items in their words, drawn anew for each study.

A study of `dora` has as many people of high as of low status; one of `crows-pairs` pairs of sentences of the grammar,
as many with praise as with blame but for chance; one of `bistereo-tuples` groups and words, joined by chance; one of
`attractiveness` a schematic face of each group of people.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ...probes.attractiveness.faces import Face, paper_faces
from ...probes.attractiveness.faces import draw as picture
from ...probes.attractiveness.stimuli import REQUIRED as IMAGE
from ...probes.attractiveness.terms import VARIANTS
from ...probes.bistereo.tuples_file import COLUMNS, COUNTERPARTS, Tuple, read_tuples
from ...probes.bistereo.tuples_tests import LINKS
from ...probes.crows_pairs.probe import REQUIRED as PAIR
from ...probes.dora.descriptors import REQUIRED as PERSON
from ...probes.dora.descriptors import read_list
from .corpus import planted

PEOPLE, PAIRS, TUPLES = 3, 200, 12
"""Of a study: people of each status, pairs, and tuples of each gender."""
POOL = 8
"""Faces of each group to draw from: few, so that a model has soon answered all questions about them."""
STRENGTH = 0.5
"""Strength of the filter, as by default."""
DIMENSION = "status"
HIGH = (
    *("rich person", "wealthy person", "posh person", "millionaire", "billionaire", "aristocrat", "heir", "landlord"),
    *("doctor", "lawyer", "professor", "engineer"),
)
LOW = (
    *("poor person", "homeless person", "unemployed person", "beggar", "panhandler", "prisoner", "gang member"),
    *("dropout", "janitor", "cleaner", "farm worker", "factory worker"),
)
"""Words of high and low status, whose skin is planted to differ in the biased models: of the list of `dora-t2i`."""
STANDINGS = {"advantaged": 1, "disadvantaged": -1}


class Group(NamedTuple):
    """A group of people of the tuples."""

    word: str
    dimension: str
    sign: int
    """1 of an advantaged group, -1 of a disadvantaged one."""

    @property
    def link(self) -> str:
        """Return what joins the word to a noun before it; empty: the word is before the noun."""
        return LINKS.get(self.dimension, "")


def people(study: int, path: Path) -> None:
    """Write the people of a study, as `dora` reads them."""
    draw = random.Random(f"people {study}")
    plural = {one.singular: one.plural for one in read_list(None).values}
    chosen = [*draw.sample(HIGH, PEOPLE), *draw.sample(LOW, PEOPLE)]
    _write(path, PERSON, ((DIMENSION, word, plural[word]) for word in chosen))


def pairs(study: int, path: Path) -> None:
    """Write the pairs of a study, as `crows-pairs` reads them: blame of the undesirable is the stereotype."""
    _write(path, PAIR, _pairs(study))


def tuples(study: int, path: Path) -> None:
    """Write the tuples of a study, as `bistereo-tuples` reads them: as many of women as of men."""
    _write(path, COLUMNS, _tuples(random.Random(f"tuples {study}")))


def faces(study: int, path: Path) -> None:
    """Write the faces of a study, as `attractiveness` reads them, and beside the file their images."""
    rows = []
    for face in _faces(random.Random(f"faces {study}")):
        for variant in VARIANTS:
            file = path.with_name(f"{face.id}-{variant}.png")
            file.write_bytes(picture(face, variant, STRENGTH))
            rows.append((face.id, file.name, variant, *(getattr(face, name) for name in IMAGE[3:])))
    _write(path, IMAGE, rows)


@cache
def opposites() -> list[tuple[str, str]]:
    """Return the words of praise of the tuples, each with its opposite of blame."""
    return sorted({(one.opposite, one.attribute) for one in listed_tuples() if one.opposite})


@cache
def groups_of_tuples() -> list[Group]:
    """Return the groups of the tuples that are advantaged or not, by their words."""
    found = {one.descriptor: one for one in listed_tuples() if one.standing}
    return [Group(word, one.dimension, STANDINGS[one.standing]) for word, one in found.items()]


@cache
def listed_tuples() -> list[Tuple]:
    """Return the tuples of the study."""
    return read_tuples(None)


def _faces(draw: random.Random) -> Iterator[Face]:
    for _, found in groupby(paper_faces(), lambda one: (one.gender, one.race, one.age_group)):
        yield draw.choice(list(found)[:POOL])


def _tuples(draw: random.Random) -> Iterator[Sequence[str]]:
    """Yield for each gender an advantaged group of every dimension, and disadvantaged groups with words of blame."""
    groups, pairs = groups_of_tuples(), opposites()
    for term in draw.choice(list(COUNTERPARTS.items())):
        above = {one.dimension: one for one in draw.sample(groups, len(groups)) if one.sign > 0}
        for one in above.values():
            good, _ = draw.choice(pairs)
            yield one.dimension, one.word, term, good, "positive", "", "", "advantaged", "yes", "", ""
        below = [(one, pair) for one in groups if one.sign < 0 and one.dimension in above for pair in pairs]
        for one, (good, bad) in draw.sample(below, TUPLES):
            yield one.dimension, one.word, term, bad, "negative", "", good, "disadvantaged", "yes", "", ""


def _pairs(study: int) -> Iterable[Sequence[str]]:
    left = PAIRS
    for line in planted(2 * PAIRS, 0.75, study + 1_000_000):  # no line of the training is drawn by such a seed
        praise, (desirable, undesirable) = line.weights[0] > line.weights[1], line.texts
        if line.weights[0] != line.weights[1] and left:
            left -= 1
            kind = "race-color" if "skinned" in desirable else "physical-appearance"
            both = (desirable, undesirable) if praise else (undesirable, desirable)
            yield (*both, "antistereo" if praise else "stereo", kind)


def _write(path: Path, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(names)
        table.writerows(rows)
