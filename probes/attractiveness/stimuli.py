"""Faces with and without a beauty filter: a folder of images with a metadata CSV, checked before the first request."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ...core.contracts.errors import DataError
from ...core.contracts.inputs import file_bytes
from ...core.contracts.records import Scalar
from ...core.tables import Row, read_rows
from ..shared.images import METADATA, inside, probe_image, require_pillow, upright
from .terms import PERSON, VARIANTS

REQUIRED = ("face_id", "file", "variant", *PERSON)
RATING = "rating_"
SHOWN = 5
"""Number of problems that an error lists; the rest are counted."""
_RATINGS = re.compile(r"\d+(\.\d+)?(;\d+(\.\d+)?)*")


class Stimulus(msgspec.Struct, frozen=True, kw_only=True):
    """An image of a person."""

    face: str
    variant: str
    sha256: str
    media: str
    turned: bool = False
    """Whether the picture is shown as its EXIF orientation says, not as its bytes are stored."""
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
    size: tuple[int, int]


def read_stimuli(path: str) -> list[Stimulus]:
    """Read a folder with `metadata.csv`, or the CSV file itself; files are named relative to it.

    Columns: `face_id`, `file`, `variant` (`original`, `filtered`, or others), `gender`, `age_group`, `race`, `source`,
    and any `rating_NAME`. A face with an empty `gender`, `age_group` or `race` is left out of the
    comparisons by that column.

    Returns:
        The images of each face, one after the other, the one without a change first: `original`, or the first variant.

    Raises:
        DataError: a face does not have one image per variant (of three or more variants: one without a change, and
            at least one other), an image is missing, unreadable or a duplicate, or the
            two rows of a face differ in size or in other columns. The error lists all problems.
        MissingExtraError: Pillow is not installed.
    """
    require_pillow("reading images")
    table = Path(path) / METADATA if Path(path).is_dir() else Path(path)
    rows = read_rows(str(table), REQUIRED)
    problems: list[str] = []
    checked = [found for row in rows if (found := _read(row, table.parent, problems)) is not None]
    # A face with an unreadable image is not reported as unpaired too.
    problems += [*_duplicates(checked), *_unpaired(rows), *_unlike(checked)]
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise DataError("; ".join(problems[:SHOWN]) + more + ".", code="data.images")
    place = {variant: number for number, variant in enumerate(_variants(rows))}
    order = {face: number for number, face in enumerate(dict.fromkeys(found.stimulus.face for found in checked))}
    return sorted((found.stimulus for found in checked), key=lambda s: (order[s.face], place[s.variant]))


def _read(row: Row, folder: Path, problems: list[str]) -> _Checked | None:
    file = folder / row.filled("file").strip()
    face, variant = row.filled("face_id").strip(), _variant(row)
    try:
        stored = file_bytes(inside(folder, row.filled("file")))
        data = upright(stored)
        media, size = probe_image(data)
    except (OSError, ValueError) as error:
        problems.append(f"{row.path}, line {row.line}: {str(file)!r} cannot be read as an image ({_why(error)})")
        return None
    cells: dict[str, str | None] = {name: row.optional(name) for name in PERSON}
    stimulus = Stimulus(
        face=face,
        variant=variant,
        sha256=hashlib.sha256(data).hexdigest(),
        media=media,
        path=str(file),
        turned=data != stored,
        ratings=_ratings(row),
        **cells,
    )
    return _Checked(row, stimulus, size)


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


def _duplicates(checked: Sequence[_Checked]) -> Iterable[str]:
    first: dict[str, Row] = {}
    for found in checked:
        row = first.setdefault(found.stimulus.sha256, found.row)
        if row is not found.row:
            same = f"{row.cells['file']!r} (line {row.line})"
            yield f"{found.row.path}, line {found.row.line}: {found.row.cells['file']!r} has the bytes of {same}"


def _unpaired(rows: Sequence[Row]) -> Iterable[str]:
    counts = Counter((row.cells["face_id"].strip(), _variant(row)) for row in rows)
    reference, *changed = variants = _variants(rows)
    for face in dict.fromkeys(face for face, _ in counts):
        for variant in variants:
            number = counts[face, variant]
            # Of several changes a face may lack some.
            if number != 1 and (number or len(changed) < 2 or variant == reference):
                yield f"face {face!r} has {number} images of variant {variant!r}; it needs one"
        if not any(counts[face, variant] for variant in changed):
            yield f"face {face!r} has no image besides {reference!r}; it needs one with a change"


def _unlike(checked: Sequence[_Checked]) -> Iterable[str]:
    first: dict[str, _Checked] = {}
    for found in checked:
        other = first.setdefault(found.stimulus.face, found)
        if other.size != found.size:
            (a, b), (c, d) = other.size, found.size
            yield f"face {found.stimulus.face!r}: the sizes of its images differ, {a} x {b} and {c} x {d}"
        for name in PERSON:
            one, two = getattr(other.stimulus, name), getattr(found.stimulus, name)
            if one != two:
                yield f"face {found.stimulus.face!r}: {name} is {one!r} in one row and {two!r} in the other"
