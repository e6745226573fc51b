"""Masked sentences of IndiCASA's evaluation with the texts that a completion is compared with.

The files are the authors' `Masked_IndiBias.csv`, with the sentence pairs of IndiBias or a file of your own texts.
Without files, the twenty example prompts in `data` are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

import msgspec

from ...core.contracts.records import Scalar
from ...core.design.folder import table_at
from ...core.tables import Parsed, TableOptions
from .masked import Masked, read_masked
from .terms import ANTI, KINDS, STEREOTYPE
from .truths import truths_of


class Prompt(msgspec.Struct, frozen=True):
    """A masked sentence, with its texts completed by the stereotype and by its opposite."""

    id: str
    category: str
    direction: str
    """`stereo` if the original sentence states a stereotype, `antistereo` if it contradicts one."""
    masked: str
    source: str
    """Name of the first prompt with the same sentence: its own name unless it is a duplicate."""
    stereotypes: tuple[str, ...]
    antis: tuple[str, ...]
    parts: dict[str, Scalar] = {}
    """Levels of the parts that a folder of data declares."""

    def texts(self) -> list[tuple[str, int, str]]:
        """Return kind, number and text of each ground truth."""
        return [
            (kind, number, text)
            for kind, texts in zip(KINDS, (self.stereotypes, self.antis), strict=True)
            for number, text in enumerate(texts)
        ]


def read_prompts(data: str | None, truths: str | None, options: TableOptions | None = None) -> Parsed[Prompt]:
    """Read the prompts with their ground truths, in the order of the file.

    Args:
        data: A file or folder in the format of `Masked_IndiBias.csv`; None: the included examples.
        truths: The sentence pairs of IndiBias (`modified_eng_sent_more` ...), joined row by row; or your own texts
            (`prompt`, `type`, `text`), in addition to the filled sentence; a repetition of it counts once. None: the
            table `truths` of the folder, or those of the examples.
        options: How `data` is to be understood.

    Raises:
        DataError: A file or one of its rows cannot be used, or a prompt lacks a text of either kind.
    """
    if data is not None:
        parsed = read_masked(data, options)
        texts = truths or table_at(data, "truths")
        joined, notes = _joined(parsed.values, texts, options)
        return Parsed(parsed.path, joined, parsed.left_out, (*parsed.remarks, *notes))
    folder = resources.files(__package__) / "data"
    with resources.as_file(folder / "prompts.csv") as prompts, resources.as_file(folder / "truths.csv") as shipped:
        examples = read_masked(str(prompts))
        joined, notes = _joined(examples.values, truths or str(shipped), options)
        return Parsed(examples.path, joined, examples.left_out, notes)


def _joined(
    rows: Sequence[Masked], truths: str | None, options: TableOptions | None
) -> tuple[list[Prompt], tuple[str, ...]]:
    by_name, notes = truths_of(rows, truths, options)
    first: dict[tuple[str, str], str] = {}
    prompts = []
    for row in rows:
        texts = by_name[row.id]
        same = (row.category, " ".join(row.masked.lower().split()))
        source = first.setdefault(same, row.id)
        sides = (tuple(texts[STEREOTYPE]), tuple(texts[ANTI]))
        prompts.append(Prompt(row.id, row.category, row.direction, row.masked, source, *sides, row.parts))
    return prompts, notes
