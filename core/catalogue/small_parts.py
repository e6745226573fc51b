"""Which comparisons a part of a study is too small for: groups of fewer than `FEWEST_UNITS` units, before it is asked.

Units are twin pairs or distinct prompts: repeats of a prompt are none, unless the whole study has too few prompts, and
repeats are what it draws from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..contracts import Stage
from ..contracts.canonical import encode, question_of
from ..contracts.sizes import FEWEST_UNITS
from ..design import Design, DesignedStage, Rows
from ..design.grid import joint

if TYPE_CHECKING:
    from .study import Catalogue, Study

FEW = (
    "Too small to compare {groups}: a group with fewer than {fewest} units (twin pairs, or distinct prompts) shows "
    "nothing, and no number of it stands first. To ask more: --limit N."
)


def small_words(catalogue: Catalogue, study: Study) -> str:
    """Return in a sentence what a part of a study is too small for; empty for the whole study, and for nothing."""
    if study.limit is None:
        return ""
    # A question that counts findings is about single levels of what the units are made of.
    unit = study.limit.unit if any(question.counts for question in study.questions) else ()
    few = few_units(catalogue.instrument(study).every_stage()[0], unit)
    groups = ", ".join(f"by {name.replace('_', ' ')} ({count})" for name, count in few.items())
    return FEW.format(groups=groups, fewest=FEWEST_UNITS) if few else ""


def few_units(stage: Stage, names: Iterable[str] = ()) -> dict[str, int]:
    """Return the factors by which a part is too small to compare, each with the units of its smallest group.

    Args:
        stage: the first stage of the part.
        names: factors besides those that the study compares or reports by.
    """
    if not isinstance(stage, DesignedStage):
        return _few_of_trials(stage, dict.fromkeys((*stage.counting.by, *names)), ())
    design = stage.design
    compared = dict.fromkeys((*design.named("group", "context", "by"), *names))
    if type(stage).trials is not DesignedStage.trials:
        return _few_of_trials(stage, compared, design.named("group"))  # its rows do not say what it asks
    return dict(_few_of_design(design, stage.rows, compared))


def _few_of_trials(stage: Stage, names: Iterable[str], groups: Iterable[str]) -> dict[str, int]:
    prompts: dict[str, dict[tuple[object, ...], set[bytes]]] = {name: {} for name in names if name in stage.factors}
    sides = [group for group in groups if group in stage.factors]
    for trial in stage.trials({}):
        prompt = encode(question_of(trial.request))
        for name, levels in prompts.items():
            levels.setdefault(tuple(trial.factors[factor] for factor in (name, *sides)), set()).add(prompt)
    fewest = {name: min(map(len, levels.values()), default=FEWEST_UNITS) for name, levels in prompts.items()}
    return {name: count for name, count in fewest.items() if count < FEWEST_UNITS}


def _few_of_design(design: Design, rows: Rows | None, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        if name not in design.vocabulary.names:
            continue
        fewest = _fewest(design, rows, name, design.named("repeat"))
        if fewest < FEWEST_UNITS and _fewest(design, None, name, design.named("repeat")) < FEWEST_UNITS:
            fewest = _fewest(design, rows, name, ())
        if fewest < FEWEST_UNITS:
            yield name, fewest


def _fewest(design: Design, rows: Rows | None, name: str, repeats: Iterable[str]) -> int:
    """Return the units of the smallest group, in a level of a factor, that is compared with others."""
    unit = [design.grid[factor] for factor in design.unit_factors if factor not in {*repeats}]
    groups = [design.codes(group) for group in dict.fromkeys((name, *design.named("group")))]
    chosen = slice(None) if rows is None else rows
    present = (groups[0] >= 0)[chosen]
    units, sides = (joint(codes, design.size)[chosen][present] for codes in (unit, groups))
    first = np.unique(sides.astype(np.int64) * (design.size + 1) + units, return_index=True)[1]
    return int(np.unique(sides[first], return_counts=True)[1].min(initial=design.size))
