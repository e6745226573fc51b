"""One page with the answers of several runs of one study, each for itself: nothing is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..answer import Reply, Row, answer_of
from ..answer.rows import row_of, varying_of
from ..catalogue.certificates import flat
from ..catalogue.questions import questions_with
from ..catalogue.study import SUBJECT
from ..contracts.estimates import Estimate
from ..contracts.sizes import State
from ..engine.manifest import new_name
from ..scoring.score import Scores
from ..scoring.warnings import warnings_of
from .content import Card, ReportContent, StudyInfo
from .forest import forest_of
from .render import write

LABEL = "model"


class Together(NamedTuple):
    """What a page says of several models."""

    lead: str
    """What was asked of all, in a sentence."""
    cards: tuple[Card, ...]
    """The answer of each model."""
    facts: Mapping[str, str]
    """What else the reader has to know, by a heading of one or two words."""


def card_of(label: str, scores: Scores, note: Callable[[State], str]) -> Card:
    """Return the answer of a run to its study's first question, as a card of a page, with what a verdict notes."""
    numbers = [row.number for row in _rows(label, scores)]
    reply = answer_of(scores).replies[0]
    size = reply.statement
    if numbers:
        least, most = (pick(numbers, key=lambda number: number.value or 0.0) for pick in (min, max))
        values = least.signed if least.short == most.short else f"{least.signed} to {most.signed}"
        where = f", in each of {len(numbers)} groups" if least.short == most.short else f" in {len(numbers)} groups"
        size = f"{reply.label.partition(',')[0]}: {values} {most.unit}{where if len(numbers) > 1 else ''}."
    return Card(label, reply, size, (note(reply.state),))


def write_together(title: str, page: Together, runs: Mapping[str, Scores], folder: Path) -> Path:
    """Write the page to a new folder, and return its path.

    Args:
        title: a question, which the cards answer.
        page: what it says.
        runs: scored runs of one study, by what they are called.
        folder: the folder of reports.

    Raises:
        UsageError: the folder cannot be written.
    """
    first = next(iter(runs.values())).manifest.study
    rows = tuple(row for label, scores in runs.items() for row in _rows(label, scores))
    return write(
        ReportContent(
            title=title,
            study=StudyInfo(name=first.name, summary=page.lead, citation=first.source),
            models={label: scores.manifest.identities[SUBJECT] for label, scores in runs.items()},
            names={label: scores.manifest.study.roles[SUBJECT] for label, scores in runs.items()},
            cards=page.cards,
            forest=forest_of(Reply(title, page.cards[0].reply.state, "", rows=rows)),
            facts=page.facts,
            estimates=[_named(label, e) for label, s in runs.items() for every in s.estimates.values() for e in every],
            conclusions={label: " ".join(scores.conclusions.values()) for label, scores in runs.items()},
            confused=list(dict.fromkeys(sentence for scores in runs.values() for sentence in scores.confused)),
            warnings=list(dict.fromkeys(warning for scores in runs.values() for warning in warnings_of(scores))),
            methods=[text for text in next(iter(runs.values())).methods if text],
            limits=first.limits,
            deviations=first.deviations,
            provenance={
                "runs": {label: scores.run.name for label, scores in runs.items()},
                "options of the probe that were set": first.options,
            },
        ),
        folder / f"together-{new_name(first.name, f'{len(runs)}-models')}",
    )


def _rows(label: str, scores: Scores) -> list[Row]:
    """Return the numbers that answer the study's first question, under the name of the model."""
    question = next(iter(questions_with(scores.manifest.study.questions, flat(scores.options))), None)
    if question is None:
        return []
    answering, _ = question.among(scores.headline, lambda e: (e.metric, e.group))
    answering = [e for e in answering if e.value is not None]
    rows = (row_of(question, e, varying_of(answering)) for e in answering)
    return [msgspec.structs.replace(row, section=label) for row in rows]


def _named(label: str, e: Estimate) -> Estimate:
    return e.replace(group={LABEL: label, **e.group})
