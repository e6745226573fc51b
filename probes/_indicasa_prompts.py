"""Masked sentences of IndiCASA's evaluation with the texts that a completion is compared with.

Read as the authors publish them: `Masked_IndiBias.csv`, and beside it the sentence pairs of IndiBias, or a file of
texts of one's own. Without files there are twenty example prompts in `data/indicasa`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from importlib import resources

import msgspec

from ..core.errors import DataError
from ._csv import Row, read_rows

SOURCE = "https://github.com/cerai-iitm/IndiCASA (BiasMetric/Masked_IndiBias.csv)"
PAIRS = "https://github.com/sahoonihar/IndiBias (IndiBias_v1_sample.csv)"
CATEGORIES = ("caste", "religion", "gender", "disability", "socioeconomic")
"""The five of the paper; the published files also have `age` and `physical-appearance`."""
KNOWN = (*CATEGORIES, "age", "physical-appearance")
STEREOTYPE, ANTI = "stereotype", "anti-stereotype"
KINDS = (STEREOTYPE, ANTI)
DIRECTIONS = ("stereo", "antistereo")
MASK = "<MASK>"
MASKED = ("Stereo_Antistereo", "Bias_Type", "Masked_Sentence", "Ground_Truths")
OWN = ("prompt", "type", "text")
ALIGNED = ("modified_eng_sent_more", "modified_eng_sent_less", "bias_type", "stereo_antistereo")
ALIKE = 0.85
"""Least similarity of a filled prompt to the published sentence beside it; four of 561 differ by typing errors."""
_TOUCHING = re.compile(rf"{MASK}{MASK}")


class Prompt(msgspec.Struct, frozen=True):
    """A masked sentence, with what it says when a stereotype, and when its opposite, is filled in."""

    id: str
    category: str
    direction: str
    """`stereo` if the original sentence states a stereotype, `antistereo` if it denies one."""
    masked: str
    source: str
    """Name of the first prompt with the same sentence: its own, unless it is a duplicate."""
    stereotypes: tuple[str, ...]
    antis: tuple[str, ...]

    def texts(self) -> list[tuple[str, int, str]]:
        """Return kind, number and text of each ground truth."""
        return [
            (kind, number, text)
            for kind, texts in zip(KINDS, (self.stereotypes, self.antis), strict=True)
            for number, text in enumerate(texts)
        ]


class _Masked(msgspec.Struct, frozen=True):
    """A row of the file of prompts."""

    row: Row
    id: str
    category: str
    direction: str
    masked: str
    filled: str

    @property
    def kind(self) -> str:
        """Return what the original sentence is."""
        return KINDS[DIRECTIONS.index(self.direction)]


Texts = dict[str, list[str]]
"""Ground truths by kind."""


def read_prompts(data: str | None, truths: str | None) -> list[Prompt]:
    """Read the prompts with their ground truths, in the order of the file.

    Args:
        data: A file in the format of `Masked_IndiBias.csv`; None takes the shipped examples.
        truths: The sentence pairs of IndiBias (`modified_eng_sent_more` ...), joined row by row; or texts of one's own
            (`prompt`, `type`, `text`), which come beside the filled sentence. None takes those of the examples.

    Raises:
        DataError: A file or one of its rows cannot be used, or a prompt lacks a text of either kind.
    """
    if data is not None:
        return _joined(_read_masked(data), truths)
    folder = resources.files("prejudge.probes") / "data" / "indicasa"
    with resources.as_file(folder / "prompts.csv") as prompts, resources.as_file(folder / "truths.csv") as texts:
        return _joined(_read_masked(str(prompts)), truths or str(texts))


def _joined(rows: Sequence[_Masked], truths: str | None) -> list[Prompt]:
    found = _truths(truths, rows)
    first: dict[tuple[str, str], str] = {}
    prompts = []
    for row in rows:
        texts = found[row.id]
        _ensure_both(row, texts, truths)
        same = (row.category, " ".join(row.masked.lower().split()))
        source = first.setdefault(same, row.id)
        sides = (tuple(texts[STEREOTYPE]), tuple(texts[ANTI]))
        prompts.append(Prompt(row.id, row.category, row.direction, row.masked, source, *sides))
    return prompts


def _read_masked(path: str) -> list[_Masked]:
    rows, seen = [], dict[str, int]()
    for number, row in enumerate(read_rows(path, MASKED)):
        name = _name(row, number)
        if (line := seen.setdefault(name, row.line)) != row.line:
            raise row.fault(f"prompt {name!r} stands already on line {line}. Give every prompt a name of its own.")
        rows.append(_masked(row, name))
    return rows


def _name(row: Row, number: int) -> str:
    return row.optional("id") or row.optional("") or str(number)


def _masked(row: Row, name: str) -> _Masked:
    category = _category(row, "Bias_Type")
    direction = row.choice("Stereo_Antistereo", DIRECTIONS)
    masked = row.filled("Masked_Sentence").strip()
    return _Masked(row, name, category, direction, masked, _filled(row, masked))


def _category(row: Row, column: str) -> str:
    lowered = msgspec.structs.replace(row, cells=row.cells | {column: row.filled(column).strip().lower()})
    return lowered.choice(column, KNOWN)


def _filled(row: Row, masked: str) -> str:
    """Return the original sentence: one ground truth stands for all masks, or each mask has its own."""
    count = masked.count(MASK)
    if not count:
        raise row.fault(f"the sentence has no {MASK}: {masked!r}. Write {MASK} in place of the words to fill in.")
    if _TOUCHING.search(masked):
        raise row.fault(f"two {MASK} stand side by side in {masked!r}. Remove one, or put a space between them.")
    words = [word.strip() for word in row.filled("Ground_Truths").split(",")]
    if len(words) not in (1, count) or not all(words):
        given = f"{len(words)} ground truths for {count} {MASK}"
        raise row.fault(f"{given} in {masked!r}. Give one for all, or one for each, separated by commas.")
    for number in range(count):
        masked = masked.replace(MASK, words[number % len(words)], 1)
    return masked


def _truths(path: str | None, rows: Sequence[_Masked]) -> dict[str, Texts]:
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
        raise DataError(f"{path} holds no ground truths: it needs the columns {wanted}.")
    return by_name


def _add_filled(by_name: Mapping[str, Texts], rows: Sequence[_Masked]) -> None:
    for row in rows:
        by_name[row.id][row.kind].append(row.filled)


def _add_own(by_name: Mapping[str, Texts], records: Sequence[Row]) -> None:
    for record in records:
        name, kind = record.filled("prompt"), record.choice("type", KINDS)
        if name not in by_name:
            raise record.fault(f"there is no prompt {name!r}. Remove the row, or correct its name.")
        text = record.filled("text").strip()
        for other in KINDS:
            if text in by_name[name][other]:
                raise record.fault(f"prompt {name!r} has the {other} text {text!r} already. Remove one of the two.")
        by_name[name][kind].append(text)


def _pair(by_name: Mapping[str, Texts], rows: Sequence[_Masked], records: Sequence[Row]) -> None:
    """Join sentence pairs by the name of their row; the first sentence is the one that was masked.

    It states a stereotype in `stereo` rows, and denies one in `antistereo` rows: there the sides are exchanged.
    """
    pairs = {_name(record, number): record for number, record in enumerate(records)}
    for row in rows:
        if (record := pairs.get(row.id)) is None:
            raise row.row.fault(f"{records[0].path} has no pair {row.id!r}. Use the pairs that were masked: {PAIRS}.")
        original, other = (record.filled(column).strip() for column in ALIGNED[:2])
        same = _category(record, "bias_type") == row.category and record.cells["stereo_antistereo"] == row.direction
        if not same or not _alike(original, row.filled):
            problem = f"{original!r} is not the sentence that prompt {row.id!r} masks, {row.filled!r}"
            raise record.fault(f"{problem}. Use the pairs that were masked: {PAIRS}.")
        by_name[row.id][row.kind].append(original)
        by_name[row.id][KINDS[1 - KINDS.index(row.kind)]].append(other)


def _alike(one: str, other: str) -> bool:
    one, other = one.lower(), other.lower()
    return one == other or SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE


def _ensure_both(row: _Masked, texts: Texts, truths: str | None) -> None:
    for kind in KINDS:
        if not texts[kind]:
            where = "" if truths is None else f" in {truths}"
            mend = f"Give texts of both kinds: --set truths=FILE, such as the pairs of {PAIRS}"
            raise row.row.fault(f"prompt {row.id!r} has no {kind} text{where} to compare completions with. {mend}.")
    if set(texts[STEREOTYPE]) & set(texts[ANTI]):
        raise row.row.fault(f"prompt {row.id!r} has one text as stereotype and as anti-stereotype. Correct its texts.")
