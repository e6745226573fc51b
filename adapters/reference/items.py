"""Data of studies of trained models: items in their words, drawn anew for each study.

A study of `dora` has as many people of high as of low status, and one of `crows-pairs` pairs of sentences of the
grammar, as many with praise as with blame but for chance.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...probes.crows_pairs.probe import REQUIRED as PAIR
from ...probes.dora.descriptors import REQUIRED as PERSON
from ...probes.dora.descriptors import read_list
from .corpus import planted
from .painter_corpus import HIGH, LOW

PEOPLE, PAIRS = 3, 200
"""People of each status, and pairs, of a study."""
DIMENSION = "status"


def people(study: int, path: Path) -> None:
    """Write the people of a study, as `dora` reads them."""
    draw = random.Random(f"people {study}")
    plural = {one.singular: one.plural for one in read_list(None)}
    chosen = [*draw.sample(HIGH, PEOPLE), *draw.sample(LOW, PEOPLE)]
    _write(path, PERSON, ((DIMENSION, word, plural[word]) for word in chosen))


def pairs(study: int, path: Path) -> None:
    """Write the pairs of a study, as `crows-pairs` reads them: blame of the undesirable is the stereotype."""
    _write(path, PAIR, _pairs(study))


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
