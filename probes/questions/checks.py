"""What can be wrong with a declaration: levels, slots, and the form of an answer. Each as key, problem and code."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.design.levels import agree
from .declared import AnswerDeclared, DesignForm
from .design import names_of, options_of, rows_of
from .slots import faults_of, slots_of

Problem = tuple[str, str, str]
LEVELS, TEMPLATE, VALUE = "folder.levels", "folder.template", "folder.value"
ANSWER_SLOT = "answer"
PLAIN = frozenset({"name", "id", "text"})
"""Columns of levels that are no attributes."""
MOST_OPTIONS, MOST_NUMBERS = 26, 1001


def level_faults(design: DesignForm) -> Iterator[Problem]:
    """Yield what is wrong with the levels of factors."""
    earlier: dict[str, list[str]] = {}
    attributes: dict[str, str] = {}
    for name, form in design.factors.items():
        rows, key = rows_of(name, form), f"factors/{name}"
        names = [str(row["name"]) for row in rows]
        if not rows and not form.file:
            yield key, 'it has no levels. Give `levels = [...]` or `file = "NAME.csv"`.', LEVELS
        if form.role == "group" and len(set(names)) == 1:
            yield key, f"a group is compared with another, and there is {names[0]!r} alone. Give two or more.", LEVELS
        for number, level in enumerate(names, 1):
            if level in names[: number - 1]:
                yield key, f"level {number}, {level!r}, occurs twice. Give each a text of its own, or an `id`.", LEVELS
        for gate in names_of(form.within):
            if gate not in earlier:
                yield (
                    key,
                    f"within names {gate!r}, which is no factor before it: {', '.join(earlier) or 'none'}.",
                    LEVELS,
                )
                continue
            for number, row in enumerate(rows, 1):
                if gate not in row or not agree(row[gate], tuple(earlier[gate])):
                    listed = ", ".join(map(repr, earlier[gate]))
                    yield (
                        key,
                        f"level {number}, {names[number - 1]!r}: {gate} is {row.get(gate)!r}. It may be: {listed}.",
                        LEVELS,
                    )
        columns = {
            column for row in rows for column in row if column not in ("name", "id", "text", *names_of(form.within))
        }
        for column in sorted(columns):
            if column in design.factors or column in attributes:
                other = attributes.get(column, column)
                yield key, f"its column {column!r} has the name of one of {other!r}. Rename it.", LEVELS
            attributes[column] = name
        for column in form.roles:
            if column not in columns:
                yield (
                    key,
                    f"roles names {column!r}, which is no column: {', '.join(sorted(columns)) or 'none'}.",
                    LEVELS,
                )
        earlier[name] = names


def slot_faults(design: DesignForm, answer: AnswerDeclared) -> Iterator[Problem]:
    """Yield what is wrong with the slots of texts, and with those of levels that stand in them."""
    columns = {name: {c for row in rows_of(name, form) for c in row} for name, form in design.factors.items()}
    slot_names = [*design.factors, *(f"{n}.{c}" for n, of in columns.items() for c in sorted(of - PLAIN))]
    slot_names += [column for of in columns.values() for column in of if column not in {*PLAIN, *design.factors}]
    texts = {"design/text": design.text, "design/system": design.system, "answer/continuation": answer.continuation}
    texts |= {f"design/turns/{number}": turn.text for number, turn in enumerate(design.turns, 1)}
    texts |= {f"answer/options/{name}": text for name, text in options_of(answer).items()}
    for key, text in texts.items():
        accepted = [*slot_names, "options"] if key == "design/text" and answer.form == "choice" else slot_names
        yield from ((key, problem, TEMPLATE) for problem in faults_of(text, accepted))
    if answer.judge:
        yield from (("answer/judge", problem, TEMPLATE) for problem in faults_of(answer.judge, [ANSWER_SLOT]))
    slots = {
        name: {slot for row in rows_of(name, form) for slot in slots_of(str(row.get("text", ""))) if slot in slot_names}
        for name, form in design.factors.items()
    }
    for name, inner in slots.items():
        for slot in sorted(inner):
            if slots.get(slot.partition(".")[0]):
                problem = f"a level has the slot {{{slot}}}, whose levels have slots themselves: that could loop."
                yield f"factors/{name}", f"{problem} Write the text out.", TEMPLATE


def answer_faults(answer: AnswerDeclared) -> Iterator[Problem]:
    """Yield what the form of the answer lacks, or has too much."""
    form, options = answer.form, options_of(answer)
    if form == "number" and answer.range is None:
        yield "answer", "a number needs `range = [LOWEST, HIGHEST]`.", VALUE
    if answer.range is not None and not 0 < answer.range[1] - answer.range[0] < MOST_NUMBERS:
        yield "answer/range", f"it is {list(answer.range)}. Give the lowest number, then a higher one.", VALUE
    if form == "choice" and not 2 <= len(options) <= MOST_OPTIONS:
        yield "answer", f"a choice needs 2 to {MOST_OPTIONS} `options`, and has {len(options)}.", VALUE
    if form == "choice" and len({text.strip().casefold() for text in options.values()}) < len(options):
        yield "answer/options", "two options have the same text. Give each its own.", VALUE
    for name in answer.values:
        if name not in options:
            yield "answer/values", f"{name!r} is no answer. There are: {', '.join(options) or 'none'}.", VALUE
    if form == "continuation" and not answer.continuation.strip():
        yield "answer", 'a continuation needs its words: `continuation = "..."`.', VALUE
    if form == "judged" and not (answer.judge or answer.label):
        yield "answer", "a judged answer needs the question to the `judge`, or the `label` of a classifier.", VALUE
    if answer.judge and f"{{{ANSWER_SLOT}}}" not in answer.judge:
        yield (
            "answer/judge",
            f"the question to the judge lacks {{{ANSWER_SLOT}}}. Write where the answer stands.",
            VALUE,
        )
