"""Samples and labels in a folder of their own, apart from the evidence: files that are written once, or only grow.

    samples/SAMPLE/design.json        how it was drawn, with verdicts; for whoever reads the results
    samples/SAMPLE/sheet.json         what those who label see, images beside it
    samples/SAMPLE/labels-NAME.jsonl  one line per label of a person; a later one of the same item counts

A folder without its design can be sent to people who label elsewhere; their files of labels are put back beside it.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from ..contracts.errors import DataError, UnknownNameError, UsageError
from ..contracts.inputs import file_bytes
from ..store.names import run_name
from .design import Design, Sheet

DESIGN, SHEET = "design.json", "sheet.json"
MOST_NAME = 60
_ONE_AT_A_TIME = threading.Lock()
"""Two pages of one person may be open."""
_IMAGE = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


class Label(msgspec.Struct, frozen=True):
    """What a person said of an item."""

    item: str
    by: str
    label: str
    """Empty: it cannot be told."""
    note: str = ""
    at: float = 0.0


class Sample(msgspec.Struct, frozen=True, dict=True):
    """A sample in its folder.

    Args:
        folder: its folder, as `draw_sample` or `prejudge view` wrote it.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("subtle-sai", "simulated-biased", per_cell=4)
        >>> sample = prejudge.draw_sample(run.name, "chosen", ["positive", "negative", "neutral"], n=20)
        >>> sample.add("Ana", sample.sheet.items[0].item, "positive")
        >>> list(prejudge.Sample(sample.folder).labels())
        ['Ana']
    """

    folder: Path

    @cached_property
    def sheet(self) -> Sheet:
        """Return what is labelled.

        Raises:
            DataError: it cannot be read.
        """
        return _read(self.folder / SHEET, Sheet)

    @cached_property
    def design(self) -> Design:
        """Return how it was drawn.

        Raises:
            DataError: it is not here, or cannot be read.
        """
        return _read(self.folder / DESIGN, Design)

    @property
    def is_drawn(self) -> bool:
        """Return whether it is a random sample of a run's answers, and its design is here."""
        return (self.folder / DESIGN).is_file()

    @cached_property
    def same_looking(self) -> list[list[int]]:
        """Return the places of the items in groups of those that look the same to people, who label them once."""
        groups: dict[bytes, list[int]] = {}
        for place, item in enumerate(self.sheet.items):
            groups.setdefault(msgspec.json.encode((item.asked, item.said, item.images)), []).append(place)
        return list(groups.values())

    def labels(self) -> dict[str, dict[str, Label]]:
        """Return the labels that count, by person and item.

        Raises:
            DataError: a line is no label.
        """
        by_person: dict[str, dict[str, Label]] = {}
        items, labels = {item.item for item in self.sheet.items}, {"", *self.sheet.labels}
        for path in sorted(self.folder.glob("labels-*.jsonl")):
            lines = file_bytes(path).split(b"\n")
            if not _is_whole(lines[-1]):
                lines.pop()  # it was never finished
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    label = msgspec.json.decode(line, type=Label)
                    problem = "" if label.item in items and label.label in labels else _stray(label)
                except (msgspec.MsgspecError, UnicodeError) as error:
                    problem = str(error)
                if problem:
                    raise DataError(
                        f"{path.name}, line {number}: {problem}. Restore the line, or remove it.",
                        code="annotation.damaged",
                    )
                by_person.setdefault(label.by, {})[label.item] = label
        return by_person

    def add(self, by: str, item: str, label: str, note: str = "") -> None:
        """Append a label of an item and of those that look the same, and flush it to the disk.

        Raises:
            UsageError: the name, the item or the label is none.
        """
        sheet = self.sheet
        ensure_person(by)
        if item not in {listed.item for listed in sheet.items} or label not in ("", *sheet.labels):
            raise UsageError(f"{_stray(Label(item, by, label))}.", code="annotation.label")
        places = next(group for group in self.same_looking if item in [sheet.items[place].item for place in group])
        names, now = [sheet.items[place].item for place in places], time.time()
        line = b"\n".join(msgspec.json.encode(Label(name, by, label, note[:2000], now)) for name in names)
        path = self.folder / f"labels-{run_name(by)}.jsonl"
        # Appended by the system, so that two processes do not write over each other.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        try:
            with _ONE_AT_A_TIME, os.fdopen(os.open(path, flags, 0o644), "r+b") as file:
                before, end, last = file.read().rpartition(b"\n")
                if not _is_whole(last):
                    # It was being written when a process died, or the disk was full: nobody was told of it.
                    file.truncate(len(before) + len(end))
                    last = b""
                file.write((b"\n" if last else b"") + line + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UsageError(
                f"the label cannot be written to {str(path)!r}: {error.strerror or error}. It is not kept: mend this, "
                "go back, and give it again.",
                code="file.unwritable",
            ) from None

    def order(self, by: str) -> list[int]:
        """Return the places of the items in the order of a person: random, and the same every time."""
        entropy = [self.sheet.seed, *by.encode()]
        groups = np.random.default_rng(entropy).permutation(len(self.same_looking))
        return [place for group in groups for place in self.same_looking[group]]

    def image(self, sha256: str) -> bytes:
        """Return an image of an item.

        Raises:
            UnknownNameError: there is none of that name.
        """
        path = self.folder / f"{sha256}.image"
        if not _IMAGE.fullmatch(sha256) or not path.is_file():
            raise UnknownNameError("image", sha256, [])
        return path.read_bytes()

    def drawn_at_random(self, labels: Mapping[str, Mapping[str, Label]]) -> bool:
        """Return whether each person labelled the first items of their order, without choosing among them."""
        names = [listed.item for listed in self.sheet.items]
        return all(
            {names[place] for place in self.order(by)[: len(by_item)]} == set(by_item)
            for by, by_item in labels.items()
            if by_item
        )


def samples_in(folder: Path) -> list[Sample]:
    """Return the samples of a folder, the newest first."""
    return [Sample(path.parent) for path in sorted(folder.glob(f"*/{SHEET}"), reverse=True)]


def sample_of(folder: Path, name: str) -> Sample:
    """Return a sample by its name.

    Raises:
        UnknownNameError: there is none.
    """
    samples = {sample.folder.name: sample for sample in samples_in(folder)}
    if name not in samples:
        raise UnknownNameError("sample", name, samples)
    return samples[name]


def write_sample(folder: Path, design: Design | None, sheet: Sheet, image: Callable[[str], bytes]) -> Sample:
    """Write a new sample, with its images; that of a sheet has no design.

    Raises:
        UsageError: the folder cannot be written.
    """
    place = folder / sheet.sample
    try:
        place.mkdir(parents=True)
        for sha256 in {sha256 for item in sheet.items for sha256 in item.images}:
            try:
                (place / f"{sha256}.image").write_bytes(image(sha256))
            except DataError:
                continue  # the store has it not: the page says so
        if design is not None:
            (place / DESIGN).write_bytes(msgspec.json.format(msgspec.json.encode(design), indent=1))
        (place / SHEET).write_bytes(msgspec.json.format(msgspec.json.encode(sheet), indent=1))
    except OSError as error:
        raise UsageError(
            f"the sample cannot be written to {str(place)!r}: {error.strerror or error}. Name another folder with "
            "--samples.",
            code="file.unwritable",
        ) from None
    return Sample(place)


def ensure_person(by: str) -> None:
    """Refuse a name under which labels cannot be kept.

    Raises:
        UsageError: it is empty or too long.
    """
    if not by.strip() or len(by) > MOST_NAME:
        raise UsageError(f"{by!r} is no name: give 1 to {MOST_NAME} characters.", code="annotation.person")


def _is_whole(line: bytes) -> bool:
    """Return whether what follows the last line end is a label: an editor may have saved a file without it."""
    try:
        msgspec.json.decode(line, type=Label)
    except (msgspec.MsgspecError, UnicodeError):
        return False
    return True


def _stray(label: Label) -> str:
    return f"{label.label!r} is no label of item {label.item!r} of this sample"


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(file_bytes(path), type=kind)
    except FileNotFoundError:
        raise DataError(f"{str(path.parent)!r} has no {path.name}.", code="annotation.sample") from None
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}.", code="annotation.sample") from None
