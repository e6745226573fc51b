"""The labels of a sample, as answers of a run with what people said of them and their chance of being labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ..contracts import PROMPT_KEY
from ..contracts.errors import DataError, UsageError
from ..scoring.score import Scores
from .design import Design, Drawn
from .levels import as_words
from .samples import SHEET, Label, Sample

UNDRAWN = (
    "{what}. Only answers that were drawn at random say something of those that nobody labelled. Draw a sample "
    "(prejudge view), or correct by an error matrix that is known from elsewhere (--matrix)."
)


class LabelledAnswers(NamedTuple):
    """The labels of a sample."""

    design: Design
    labels: tuple[str, ...]
    """Every label that could be given."""
    frame: pl.DataFrame
    """A row per answer that most people agree on: `trial`, `key` (hex), `label` and `chance`."""
    unsettled: int
    """Answers on which people disagree, or that nobody could tell."""


def sample_at(path: str | Path) -> Sample:
    """Return the sample of a folder, or of a file of labels in it.

    Raises:
        DataError: there is nothing.
        UsageError: it is no random sample that was drawn here.
    """
    place = Path(path)
    if not place.exists():
        raise DataError(f"there is no {str(path)!r}. Name the folder of a sample.", code="annotation.sample")
    folder = place if place.is_dir() else place.parent
    sample = Sample(folder)
    if not (folder / SHEET).is_file() or not sample.is_drawn:
        what = f"{str(path)!r} is no sample that was drawn at random from a run"
        raise UsageError(UNDRAWN.format(what=what), code="annotation.not-random")
    return sample


def ensure_random(sample: Sample, labels: Mapping[str, Mapping[str, Label]]) -> None:
    """Refuse labels of answers that somebody chose.

    Raises:
        UsageError: a person did not label the first answers of their random order.
    """
    if not sample.drawn_at_random(labels):
        what = f"the labelled answers of {sample.folder.name!r} are not the first ones of their random order"
        raise UsageError(UNDRAWN.format(what=what), code="annotation.not-random")


def settled(labels: Mapping[str, Mapping[str, Label]]) -> tuple[dict[str, str], int]:
    """Return the label that more than half of its people gave each item, and how many items have none."""
    votes: dict[str, list[str]] = {}
    for by_item in labels.values():
        for item, label in by_item.items():
            votes.setdefault(item, []).append(label.label)
    gold = {}
    for item, words in votes.items():
        word, count = Counter(words).most_common(1)[0]
        if word and 2 * count > len(words):
            gold[item] = word
    return gold, len(votes) - len(gold)


def labelled_answers(sample: Sample, scores: Scores) -> LabelledAnswers:
    """Return the labels of a sample of the answers of a run.

    Raises:
        UsageError: it is of another run, was not labelled in its random order, or nobody labelled it.
        DataError: it cannot be read.
    """
    design, labels = sample.design, sample.labels()
    head = (scores.run.head or b"").hex()
    if design.run != scores.run.name or (design.head and head and design.head != head):
        raise UsageError(
            f"the labels of {sample.folder.name!r} are of the answers of {design.run}, not of {scores.run.name}: they "
            f"correct nothing here. Score {design.run} with them, or draw a sample of this run.",
            code="annotation.other-run",
        )
    ensure_random(sample, labels)
    gold, unsettled = settled(labels)
    if not gold:
        raise UsageError(
            f"{sample.folder.name!r} has no label on which people agree. Label it: prejudge view --label "
            f"{sample.folder}",
            code="annotation.few",
        )
    rows = [
        {"trial": drawn.trial, "key": drawn.key, "label": gold[drawn.item], "chance": chance}
        for drawn, chance in chances_of(design, gold)
    ]
    return LabelledAnswers(design, sample.sheet.labels, pl.DataFrame(rows), unsettled)


def chances_of(design: Design, gold: Collection[str]) -> Iterator[tuple[Drawn, float]]:
    """Yield each drawn answer that has a label with its chance of being drawn and labelled.

    Whoever stops early has labelled a random part. People may disagree more on one group or verdict than on another,
    so each stratum has a share of its own; if one has no label at all, the share of the whole sample is that of each.
    """
    drawn = Counter(answer.stratum for answer in design.items)
    labelled = Counter(answer.stratum for answer in design.items if answer.item in gold)
    overall = len(gold) / len(design.items) if design.items else 0.0
    by_stratum = len(labelled) == len(drawn)
    for answer in design.items:
        if answer.item in gold:
            share = labelled[answer.stratum] / drawn[answer.stratum] if by_stratum else overall
            yield answer, answer.probability * share


def drawn_from(design: Design, observations: pl.DataFrame) -> pl.Series | None:
    """Return which observations the sample was drawn from; None if that cannot be told from them."""
    if design.words:
        return None
    fits = pl.Series([True] * observations.height)
    for name, levels in design.filters.items():
        if name == "stage" and name not in observations.columns:
            continue
        if name not in observations.columns or name == PROMPT_KEY:
            return None
        fits = fits & as_words(observations[name]).is_in(list(levels))
    return fits
