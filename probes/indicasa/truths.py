"""Texts that completions are compared with: stereotypes and anti-stereotypes by prompt.

They are the pairs of IndiBias, or your own texts, in addition to the sentence completed with `Ground_Truths`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher

from ...core.contracts.errors import DataError
from ...core.tables import Form, Repeats, Row, TableOptions, read_table
from ...core.tables.options import PLAIN
from ...core.tables.reading import parse_rows
from .asking import mask_left
from .masked import PAIRS, Masked, category_of, name_of
from .terms import KINDS

OWN = ("prompt", "type", "text")
ALIGNED = ("modified_eng_sent_more", "modified_eng_sent_less", "bias_type", "stereo_antistereo")
ALIKE = 0.85
"""Minimum similarity of a filled prompt to the published sentence; below 1, as four of 561 have typing errors."""
Texts = dict[str, list[str]]
"""Ground truths by kind."""


def truths_of(
    rows: Sequence[Masked], path: str | None, options: TableOptions | None = None
) -> tuple[dict[str, Texts], tuple[str, ...]]:
    """Return the texts of each prompt, at least one of each kind, and what was left out of the file, in sentences.

    Raises:
        DataError: The file or one of its rows cannot be used, or a prompt lacks a text of either kind.
    """
    by_name, notes = _read(path, rows, options)
    for row in rows:
        _ensure_both(row, by_name[row.id], path)
    return by_name, notes


def _read(
    path: str | None, rows: Sequence[Masked], options: TableOptions | None
) -> tuple[dict[str, Texts], tuple[str, ...]]:
    by_name: dict[str, Texts] = {row.id: {kind: [] for kind in KINDS} for row in rows}
    if path is None:
        _add_filled(by_name, rows)
        return by_name, ()
    # What `columns` and `values` say is of the file of prompts.
    plain = PLAIN if options is None else TableOptions(bad_rows=options.bad_rows)
    table = read_table(path, (), (*OWN, *ALIGNED), plain)
    if set(ALIGNED) <= set(table.columns):
        _pair(by_name, rows, table.rows)
    elif set(OWN) <= set(table.columns):
        _add_filled(by_name, rows)
        parsed = parse_rows(table, Form(OWN), _adding(by_name), None if options is None else plain)
        return by_name, parsed.notes()
    else:
        wanted = " or ".join(", ".join(map(repr, names)) for names in (OWN, ALIGNED))
        raise DataError(f"{path} has no ground truths. It needs the columns {wanted}.", code="data.column-missing")
    return by_name, ()


def _add_filled(by_name: Mapping[str, Texts], rows: Sequence[Masked]) -> None:
    for row in rows:
        by_name[row.id][row.kind].append(row.filled)


def _adding(by_name: Mapping[str, Texts]) -> Callable[[Row], None]:
    """Return what adds a row's text to those of its prompt, the completed sentence among them; each counts once."""
    filled = {(name, _same(text)): kind for name, texts in by_name.items() for kind in KINDS for text in texts[kind]}
    repeats = Repeats(("prompt", "type"))

    def add(row: Row) -> None:
        name, kind = row.filled("prompt").strip(), row.choice("type", KINDS)
        if name not in by_name:
            problem = f"there is no prompt {name!r}. Remove the row, or correct its name."
            raise row.fault(problem, "data.no-match", "a prompt that is not there")
        text = _whole(row, "text")
        if (other := filled.get((name, _same(text)))) not in (None, kind):
            problem = f"prompt {name!r} has the {other} text {text!r} as the sentence completed with its Ground_Truths."
            raise row.fault(f"{problem} Correct the type or the text.", "data.duplicate", "a text of both types")
        repeats.check(row, (name, _same(text)), f"text {text!r} of prompt {name!r}")
        if other is None:
            by_name[name][kind].append(text)

    return add


def _whole(record: Row, column: str) -> str:
    """Return a sentence without a mask."""
    if mask_left(text := record.filled(column).strip()):
        raise record.fault(f"a mask is left in {column} {text!r}. Write the word that fills it.", "data.text")
    return text


def _same(text: str) -> str:
    """Return a text without case, extra blanks and a final full stop, for comparison."""
    return " ".join(text.casefold().split()).rstrip(". ")


def _pair(by_name: Mapping[str, Texts], rows: Sequence[Masked], records: Sequence[Row]) -> None:
    """Join sentence pairs by the name of their row; the first sentence is the masked one.

    It states a stereotype in `stereo` rows, and contradicts one in `antistereo` rows; there the sides are exchanged.
    """
    pairs = {name_of(record, number): record for number, record in enumerate(records)}
    for row in rows:
        if (record := pairs.get(row.id)) is None:
            raise row.row.fault(
                f"{records[0].path} has no pair {row.id!r}. Use the pairs that were masked: {PAIRS}.", "data.no-match"
            )
        original, other = (_whole(record, column) for column in ALIGNED[:2])
        same = category_of(record, "bias_type") == row.category and record.cells["stereo_antistereo"] == row.direction
        if not same or not _alike(original, row.filled):
            problem = f"{original!r} is not the sentence that prompt {row.id!r} masks, {row.filled!r}"
            raise record.fault(f"{problem}. Use the pairs that were masked: {PAIRS}.", "data.contradiction")
        if _same(original) == _same(other):
            raise record.fault(
                f"pair {row.id!r} has {original!r} on both sides. Use the pairs of {PAIRS}.", "data.text"
            )
        by_name[row.id][row.kind].append(original)
        by_name[row.id][KINDS[1 - KINDS.index(row.kind)]].append(other)


def _alike(one: str, other: str) -> bool:
    one, other = one.lower(), other.lower()
    return one == other or SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE


def _ensure_both(row: Masked, texts: Texts, truths: str | None) -> None:
    for kind in KINDS:
        if not texts[kind]:
            where = "" if truths is None else f" in {truths}"
            mend = f"Give texts of both kinds: --set truths=FILE, such as the pairs of {PAIRS}"
            raise row.row.fault(
                f"prompt {row.id!r} has no {kind} text{where} to compare completions with. {mend}.", "data.incomplete"
            )
