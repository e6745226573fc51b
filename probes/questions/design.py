"""From the options of `questions` to a declared design: factors, attributes, orders of options, repeated answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import msgspec

from ...core.contracts.declared import LABEL, OUTCOME
from ...core.design import AnswerForm, Balanced, By, Context, Design, Fixed, Group, Levels, Repeat, Rotation, Sampled
from ...core.design.factors import AnyFactor, RoleName
from ...core.design.levels import Value
from .declared import ORDER, SAMPLE, AnswerDeclared, FactorForm, QuestionsOptions

KINDS: Mapping[RoleName, type[AnyFactor]] = {
    **{"group": Group, "sampled": Sampled, "fixed": Fixed, "by": By},
    **{"context": Context, "balanced": Balanced, "repeat": Repeat},
}
TEXT, TURN = "text", "turn"
"""Columns of the levels of a factor: the text of each, and its number among those of one group."""
MOST_ALL = 4
"""Options of which every order can be asked; of more, each stands in each position once."""
LONGEST_NAME = 60
"""Characters of a text that names its level; a longer one is named by its number."""


def options_of(answer: AnswerDeclared) -> dict[str, str]:
    """Return the options of a choice by name."""
    if answer.form == "yes_no":
        return {"yes": "yes", "no": "no"}
    return dict(answer.options) if isinstance(answer.options, dict) else {text: text for text in answer.options}


def values_of(answer: AnswerDeclared) -> dict[str, float]:
    """Return the number of each answer: those that are stated, or 1 for the first."""
    names = list(options_of(answer))
    return (
        {name: answer.values.get(name, 0.0) for name in names}
        if answer.values
        else {name: float(at == 0) for at, name in enumerate(names)}
    )


def names_of(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one name or several as several."""
    return (value,) if isinstance(value, str) else value


def rows_of(factor: str, form: FactorForm) -> list[dict[str, Value]]:
    """Return the levels of a factor as rows with a `name` and a `text`."""
    rows = [dict(level) if isinstance(level, dict) else {TEXT: str(level)} for level in form.levels]
    return [{"name": _name_of(factor, at, row), **row} for at, row in enumerate(rows, 1)]


def _name_of(factor: str, number: int, row: Mapping[str, Value]) -> str:
    text = str(row.get(TEXT, ""))
    return (
        str(row["id"])
        if "id" in row
        else text
        if len(text) <= LONGEST_NAME and "\n" not in text
        else f"{factor} {number}"
    )


def design_of(options: QuestionsOptions) -> Design:
    """Return the declared design.

    Raises:
        UsageError: the declaration contradicts itself.
    """
    forms, answer = options.design.factors, options.answer
    factors = [_factor(name, form) for name, form in forms.items()]
    nested = {gate for form in forms.values() for gate in names_of(form.within)}
    groups = [name for name, form in forms.items() if form.role == "group"]
    factors += _orders(options, [name for name in forms if name not in groups])
    factors.append(Repeat(SAMPLE, tuple(str(number) for number in range(1, options.samples + 1))))
    shown = [name for name in (factor.name for factor in factors) if name != SAMPLE or options.samples > 1]
    design = Design(
        tuple(factors),
        id="/".join(f"{{{name}}}" for name in shown),
        without=tuple({name: names_of(levels) for name, levels in cell.items()} for cell in options.design.without),
        # A group whose levels have others nested in them, such as names, is a side: its prompts are no twins.
        within_unit=(*(name for name in groups if name not in nested), SAMPLE),
        answer=_form_of(answer),
    )
    return msgspec.structs.replace(
        design, columns={name: name for name in design.vocabulary.names if name != SAMPLE or options.samples > 1}
    )


def _factor(name: str, form: FactorForm) -> AnyFactor:
    gates = names_of(form.within)
    turns = Counter[Any]()
    rows = []
    for row in rows_of(name, form):
        gate = tuple(row.get(gate) for gate in gates)
        rows.append(row | {TURN: turns[gate]})
        turns[gate] += 1
    attributes = list(
        dict.fromkeys(key for row in rows for key in row if key not in ("name", "id", TEXT, TURN, *gates))
    )
    parts = tuple(KINDS[form.roles.get(key, "fixed")](key) for key in attributes)
    return KINDS[form.role](name, Levels.of_rows(rows), parts, gates)


def _orders(options: QuestionsOptions, turning: Sequence[str]) -> Iterator[AnyFactor]:
    """Yield the orders of the options as a factor; twins have the same one, and each is as frequent."""
    names = list(options_of(options.answer))
    if options.answer.form != "choice" or options.design.orders == "as written":
        return
    orders = list(permutations(names))
    if len(names) > MOST_ALL:
        orders = [tuple(names[at:] + names[:at]) for at in range(len(names))]
    levels = Levels(tuple(", ".join(order) for order in orders))
    turned = options.design.orders == "balanced" and turning
    yield Balanced(ORDER, levels, assigned=Rotation(tuple(f"{name}.{TURN}" for name in turning)) if turned else None)


def shown_order(order: Value, names: Sequence[str]) -> list[str]:
    """Return the names of the options as they are shown; of no order as they are written."""
    if order is None:
        return list(names)
    return sorted(names, key=lambda name: re.split(", ", str(order)).index(name))


def _form_of(answer: AnswerDeclared) -> AnswerForm | None:
    if answer.form == "number" and answer.range is not None:
        low, high = answer.range
        return AnswerForm("number", OUTCOME, tuple(str(number) for number in range(low, high + 1)))
    if answer.form in ("choice", "yes_no"):
        values = values_of(answer)
        up = tuple(name for name, value in values.items() if value == max(values.values()))
        return AnswerForm("yes_no" if answer.form == "yes_no" else "option", LABEL, tuple(values), up)
    return AnswerForm("continuation", OUTCOME) if answer.form == "continuation" else AnswerForm("words", OUTCOME)
