"""Texts that completions are compared with: stereotypes and anti-stereotypes by prompt.

They are the pairs of IndiBias, or your own texts, in addition to the sentence completed with `Ground_Truths`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from ...core.contracts.errors import DataError
from ...core.tables import Row, read_rows
from .asking import mask_left
from .masked import PAIRS, Masked, category_of, name_of
from .terms import KINDS

OWN = ("prompt", "type", "text")
ALIGNED = ("modified_eng_sent_more", "modified_eng_sent_less", "bias_type", "stereo_antistereo")
ALIKE = 0.85
"""Minimum similarity of a filled prompt to the published sentence; below 1, as four of 561 have typing errors."""
Texts = dict[str, list[str]]
"""Ground truths by kind."""


def truths_of(rows: Sequence[Masked], path: str | None) -> dict[str, Texts]:
    """Return the texts of each prompt, at least one of each kind.

    Raises:
        DataError: The file or one of its rows cannot be used, or a prompt lacks a text of either kind.
    """
    by_name = _read(path, rows)
    for row in rows:
        _ensure_both(row, by_name[row.id], path)
    return by_name


def _read(path: str | None, rows: Sequence[Masked]) -> dict[str, Texts]:
    by_name: dict[str, Texts] = {row.id: {kind: [] for kind in KINDS} for row in rows}
    if path is None:
        _add_filled(by_name, rows)
        return by_name
    records = read_rows(path, ())
    header = records[0].cells
    if set(ALIGNED) <= set(header):
        _pair(by_name, rows, records)
    elif set(OWN) <= set(header):
        _add_filled(by_name, rows)
        _add_own(by_name, records)
    else:
        wanted = " or ".join(", ".join(map(repr, names)) for names in (OWN, ALIGNED))
        raise DataError(f"{path} has no ground truths. It needs the columns {wanted}.", code="data.column-missing")
    return by_name


def _add_filled(by_name: Mapping[str, Texts], rows: Sequence[Masked]) -> None:
    for row in rows:
        by_name[row.id][row.kind].append(row.filled)


def _add_own(by_name: Mapping[str, Texts], records: Sequence[Row]) -> None:
    """Add texts to the completed sentences; a repetition counts once."""
    said = {(name, _same(text)): (kind, 0) for name, texts in by_name.items() for kind in KINDS for text in texts[kind]}
    for record in records:
        name, kind = record.filled("prompt"), record.choice("type", KINDS)
        if name not in by_name:
            raise record.fault(f"there is no prompt {name!r}. Remove the row, or correct its name.", "data.no-match")
        text = _whole(record, "text")
        other, line = said.setdefault((name, _same(text)), (kind, record.line))
        if line == record.line:
            by_name[name][kind].append(text)
        elif line or other != kind:
            where = f"on line {line}" if line else "as the sentence completed with its Ground_Truths"
            mend = "Remove one of the two." if other == kind else "Correct the type or the text of one."
            raise record.fault(
                f"prompt {name!r} has the {other} text {text!r} already, {where}. {mend}", "data.duplicate"
            )


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
