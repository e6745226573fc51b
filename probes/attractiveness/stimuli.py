"""Faces with and without a beauty filter: a folder of images with a metadata CSV, checked before the first request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.contracts.inputs import file_bytes
from ...core.contracts.records import Scalar
from ...core.pictures.checking import CheckedPicture, check_picture, conversion_notes, require_pillow
from ...core.pictures.names import WHITE
from ...core.tables import Form, Repeats, Row, RowError, TableOptions, parse_file
from ...core.tables.options import PLAIN
from ..shared.images import METADATA, inside
from .terms import PERSON, VARIANTS

REQUIRED = ("face_id", "file", "variant", *PERSON)
RATING = "rating_"
_RATINGS = re.compile(r"\d+(\.\d+)?(;\d+(\.\d+)?)*")


class Stimulus(msgspec.Struct, frozen=True, kw_only=True):
    """An image of a person."""

    face: str
    variant: str
    name: str = ""
    """In requests: the sha256, or how it is converted for models."""
    sha256: str = ""
    """Of the file."""
    media: str = ""
    path: str = ""
    """Path of the image; empty for a schematic face, which is drawn."""
    gender: str | None = None
    age_group: str | None = None
    race: str | None = None
    source: str | None = None
    ratings: dict[str, str] = {}
    """Human ratings by name: one number, or one per rater separated by semicolons."""

    def person(self) -> dict[str, Scalar]:
        """Return the person."""
        return {"gender": self.gender, "age_group": self.age_group, "race": self.race, "source": self.source}


class _Checked(msgspec.Struct, frozen=True):
    row: Row
    stimulus: Stimulus
    picture: CheckedPicture | None
    """None: it cannot be shown, as `fault` says."""
    fault: RowError | None = None


class Stimuli(msgspec.Struct, frozen=True):
    """The pictures of a folder that can be shown."""

    stimuli: list[Stimulus]
    """Original and filtered picture of each face, one after the other, in the order of the file."""
    notes: tuple[str, ...]
    """What a reader needs to know of the file and its pictures, in sentences."""


def read_stimuli(path: str, options: TableOptions = PLAIN, background: str = WHITE) -> Stimuli:
    """Read a folder with `metadata.csv`, or the CSV file itself; files are named relative to it.

    Columns: `face_id`, `file`, `variant` (`original`, `filtered`, or others), `gender`, `age_group`, `race`, `source`,
    and any `rating_NAME`. A face with an empty `gender`, `age_group` or `race` is left out of the
    comparisons by that column.

    Args:
        path: The folder or the file.
        options: How the file is to be understood; with `skip`, a face without two usable pictures is left out.
        background: Colour behind transparent pixels: red, green and blue as six hexadecimal digits.

    Raises:
        DataError: a face does not have one picture per variant (of three or more variants: one without a change, and at
            least one other), a picture is missing, unreadable, blank or a duplicate,
            or the two rows of a face differ in size or in other columns. The error lists all problems.
        MissingExtraError: Pillow is not installed.
    """
    require_pillow("reading images")
    table = Path(path) / METADATA if Path(path).is_dir() else Path(path)
    repeats = Repeats(REQUIRED)

    def read(row: Row) -> _Checked:
        entry = _read(row, table.parent, background)
        name = (entry.stimulus.face, entry.stimulus.variant, entry.stimulus.path)
        repeats.check(row, name, f"image {entry.stimulus.path!r} of face {entry.stimulus.face!r}")
        return entry

    parsed = parse_file(str(table), Form(REQUIRED), read, options)
    faults = _faults(parsed.values)
    left = parsed.without([faults[line] for line in sorted(faults)], options)
    checked = [entry for entry in parsed.values if entry.row.line not in faults]
    place = {variant: number for number, variant in enumerate(_variants(entry.row for entry in parsed.values))}
    order = {face: number for number, face in enumerate(dict.fromkeys(entry.stimulus.face for entry in checked))}
    stimuli = sorted((entry.stimulus for entry in checked), key=lambda s: (order[s.face], place[s.variant]))
    pictures = (entry.picture for entry in checked if entry.picture is not None)
    return Stimuli(stimuli, (*left.notes(), *conversion_notes(pictures, background)))


def _read(row: Row, folder: Path, background: str) -> _Checked:
    """Return a row with its picture; whether that can be shown is told beside the other rows of the face."""
    file = folder / row.filled("file").strip()
    face, variant = row.filled("face_id").strip(), _variant(row)
    cells: dict[str, Any] = {name: row.optional(name) for name in PERSON}
    stimulus = Stimulus(face=face, variant=variant, path=str(file), ratings=_ratings(row), **cells)
    try:
        picture = check_picture(file_bytes(inside(folder, row.filled("file"))), background)
    except (OSError, ValueError) as error:
        problem = f"{str(file)!r} cannot be read as an image ({_why(error)})."
        return _Checked(row, stimulus, None, row.fault(problem, "data.images", "an image that cannot be read"))
    if picture.blank:
        problem = f"{str(file)!r} is blank: it has only one colour. Remove the face."
        return _Checked(row, stimulus, None, row.fault(problem, "data.images", "a blank image"))
    stimulus = msgspec.structs.replace(stimulus, name=picture.name, sha256=picture.sha256, media=picture.media)
    return _Checked(row, stimulus, picture)


def _faults(checked: Sequence[_Checked]) -> dict[int, RowError]:
    """Return the first fault of each row, by line: of its picture, or seen only beside the other rows."""
    faults = {entry.row.line: entry.fault for entry in checked if entry.fault is not None}
    # A face with an unreadable image is not reported as unpaired too.
    for fault in (*_duplicates(checked), *_unpaired(checked), *_unlike(checked)):
        faults.setdefault(int(str(fault.fields["line"])), fault)
    spoiled = {entry.stimulus.face: entry.row.line for entry in reversed(checked) if entry.row.line in faults}
    for entry in checked:
        if entry.row.line not in faults and entry.stimulus.face in spoiled:
            problem = (
                f"the other image of face {entry.stimulus.face!r} cannot be used (line {spoiled[entry.stimulus.face]})."
            )
            faults[entry.row.line] = entry.row.fault(problem, "data.images", "the other image of a face of these")
    return faults


def _variant(row: Row) -> str:
    """Return the variant of an image: one of the study's in any case, any other as it is written."""
    plain = row.filled("variant").strip()
    return plain.casefold() if plain.casefold() in VARIANTS else plain


def _variants(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the variants, the one without a change first; those of the study where there are no others."""
    variants = tuple(dict.fromkeys(map(_variant, rows)))
    if {*variants} <= {*VARIANTS}:
        return VARIANTS
    reference = VARIANTS[0] if VARIANTS[0] in variants else variants[0]
    return (reference, *(variant for variant in variants if variant != reference))


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


def _ratings(row: Row) -> dict[str, str]:
    found = {}
    for column in row.cells:
        if column.startswith(RATING) and (cell := row.optional(column)) is not None:
            packed = cell.replace(" ", "")
            if not _RATINGS.fullmatch(packed):
                raise row.fault(f"{column} {cell!r} is not a number or several separated by semicolons.", "data.number")
            found[column.removeprefix(RATING)] = packed
    return found


def _duplicates(checked: Sequence[_Checked]) -> Iterable[RowError]:
    first: dict[str, Row] = {}
    for entry in checked:
        row = first.setdefault(entry.stimulus.sha256 or entry.stimulus.path, entry.row)
        if row is not entry.row:
            same = f"{row.cells['file']!r} (line {row.line})"
            problem = f"{entry.row.cells['file']!r} has the bytes of {same}."
            yield entry.row.fault(problem, "data.images", "the bytes of another image")


def _unpaired(checked: Sequence[_Checked]) -> Iterable[RowError]:
    counts = Counter((entry.stimulus.face, entry.stimulus.variant) for entry in checked)
    reference, *changed = variants = _variants(entry.row for entry in checked)
    reason = "a face without one image of each variant"
    for entry in checked:
        face = entry.stimulus.face
        for variant in variants:
            number = counts[face, variant]
            # Of several changes a face may lack some.
            if number != 1 and (number or len(changed) < 2 or variant == reference):
                problem = f"face {face!r} has {number} images of variant {variant!r}; it needs one."
                yield entry.row.fault(problem, "data.images", reason)
        if not any(counts[face, variant] for variant in changed):
            problem = f"face {face!r} has no image besides {reference!r}; it needs one with a change."
            yield entry.row.fault(problem, "data.images", reason)


def _unlike(checked: Sequence[_Checked]) -> Iterable[RowError]:
    first: dict[str, _Checked] = {}
    for entry in checked:
        other = first.setdefault(entry.stimulus.face, entry)
        reason = "a face whose two rows differ"
        if entry.picture is not None and other.picture is not None and other.picture.size != entry.picture.size:
            (a, b), (c, d) = other.picture.size, entry.picture.size
            problem = f"face {entry.stimulus.face!r}: the sizes of its images differ, {a} x {b} and {c} x {d}."
            yield entry.row.fault(problem, "data.images", reason)
        for name in PERSON:
            before, value = getattr(other.stimulus, name), getattr(entry.stimulus, name)
            if before != value:
                problem = f"face {entry.stimulus.face!r}: {name} is {before!r} in one row and {value!r} in the other."
                yield entry.row.fault(problem, "data.images", reason)
