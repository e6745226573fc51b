"""Draft the columns that a test needs and a file of tuples lacks, for a person to check.

Values come from the printed tuples, from a list of attributes with their opposites, from prefixes, and of `standing`
from the file's own scores: a group is advantaged where more annotators agreed on its positive than negative tuples.
Drafts are guesses: the column `drafted` names those of a row, until a person has checked them and empties the cell.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from ...core.tables import Row
from .tuples_file import COLUMNS, COUNTERPARTS, MARKS, read_tuples

Cells = dict[str, str]
DRAFTED = ("dimension", "sentiment", "opposite", "standing", "mirrored")
"""Columns that are drafted, in this order: later ones need earlier ones."""
WORDS = {
    "skin complexion": "fair dark skin skinned complexion dusky wheatish brown pale tan tanned",
    "attire": "burqa hijab niqab saree saaree sari jeans skirt mini-skirt kurta kurti salwar suit dress dressed"
    " clothing clothes shorts turban dhoti lungi gown top jeans-top shirt veil dupatta bindi sindoor uniform",
    "height": "tall short height petite towering",
    "body shape": "slim slender thin skinny fat obese overweight underweight muscular chubby curvy plump lean athletic"
    " stout bulky plus-size size-zero hourglass built bodied waist shape",
    "miscellaneous": "hair haired beard bearded moustache eyes eyed nose lips teeth pimples acne dimples freckles bald"
    " scar scars tattoo tattoos glasses spectacles wrinkles eyebrows piercing",
}
"""Words of a descriptor by dimension; a word of two dimensions counts for the later one."""
OPPOSITES = {
    "ugly": "beautiful",
    "lazy": "hardworking",
    "weak": "strong",
    "poor": "rich",
    "dumb": "smart",
    "stupid": "intelligent",
    "shy": "confident",
    "timid": "bold",
    "insecure": "confident",
    "suppressed": "liberated",
    "oppressed": "free",
    "submissive": "assertive",
    "backward": "modern",
    "conservative": "progressive",
    "old-fashioned": "modern",
    "aggressive": "gentle",
    "rude": "polite",
    "arrogant": "humble",
    "proud": "humble",
    "dirty": "clean",
    "sick": "healthy",
    "clumsy": "graceful",
    "awkward": "graceful",
    "lethargic": "energetic",
    "slow": "fast",
    "sad": "cheerful",
    "boring": "interesting",
    "greedy": "generous",
    "criminal": "law-abiding",
    "dangerous": "harmless",
    "promiscuous": "chaste",
    "characterless": "virtuous",
    "attention-seeking": "modest",
    "gluttonous": "moderate",
    "unkempt": "well-groomed",
    "inferior": "superior",
    "dependent": "independent",
    "cowardly": "brave",
}
"""Negative attributes with a positive counterpart: this project's, used only for drafts."""
PHRASES = (("has poor ", "has good "), ("has bad ", "has good "), ("less ", ""), ("not ", ""), ("lacks ", "has "))
PREFIX = re.compile(r"^(?:un|in|im|dis|ir)(?=\w{4})")


class Drafts:
    """The drafts for the rows of one file."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = [{**dict.fromkeys(COLUMNS, ""), **row.cells} for row in rows]
        self.printed = read_tuples(None)

    @cached_property
    def known(self) -> dict[str, str]:
        """Return negative attributes with their opposites: the file's own, those of the list, the printed ones."""
        printed = {one.attribute: one.opposite for one in self.printed if one.opposite}
        own = {cells["attribute"]: cells["opposite"] for cells in self.rows if cells["opposite"]}
        return OPPOSITES | printed | own

    @cached_property
    def positive(self) -> frozenset[str]:
        """Return attributes that are positive."""
        told = {cells["attribute"] for cells in self.rows if cells["sentiment"] == "positive"}
        printed = {one.attribute for one in self.printed if one.sentiment == "positive"}
        return frozenset(told | printed | {*self.known.values()}) - {*self.known}

    def dimension(self, cells: Cells) -> str:
        """Return the dimension of a descriptor: that of the printed tuples, or that of one of its words."""
        descriptor = cells["descriptor"].lower()
        for one in self.printed:
            if one.descriptor == descriptor:
                return one.dimension
        words = {*descriptor.split(), *re.findall(r"\w+", descriptor)}
        found = [dimension for dimension, known in WORDS.items() if words & {*known.split()}]
        return found[-1] if found else ""

    def sentiment(self, cells: Cells) -> str:
        """Return whether an attribute is known as negative or positive."""
        if cells["opposite"] or self._opposite(attribute := cells["attribute"].lower()):
            return "negative"
        return "positive" if attribute in self.positive else ""

    def opposite(self, cells: Cells) -> str:
        """Return the positive counterpart of a negative attribute."""
        return "" if cells["sentiment"] != "negative" else self._opposite(cells["attribute"].lower())

    def _opposite(self, attribute: str) -> str:
        if attribute in self.known:
            return self.known[attribute]
        for begins, instead in PHRASES:
            if attribute.startswith(begins):
                return instead + attribute.removeprefix(begins)
        bare = PREFIX.sub("", attribute)
        if bare != attribute and bare in self.positive:
            return bare
        full = attribute.removesuffix("less") + "ful"
        return full if attribute.endswith("less") and full in self.positive else ""

    @cached_property
    def agreement(self) -> dict[tuple[str, str, str], float]:
        """Return by group how much more annotators agreed on positive than on negative tuples about it.

        It is undefined (NaN) as long as the sentiment of one of them is not known.
        """
        found: dict[tuple[str, str, str], float] = defaultdict(float)
        for cells in self.rows:
            score = float(cells["score"] or 1)
            found[_group(cells)] += {"positive": score, "negative": -score}.get(cells["sentiment"], math.nan)
        return found

    def standing(self, cells: Cells) -> str:
        """Return the standing of a group: that of the printed tuples, or what more annotators agreed on."""
        for one in self.printed:
            if (one.dimension, one.descriptor) == (cells["dimension"], cells["descriptor"].lower()) and one.standing:
                return one.standing
        balance = self.agreement[_group(cells)]
        return "advantaged" if balance > 0 else "disadvantaged" if balance < 0 else ""

    def mirrored(self, cells: Cells) -> str:
        """Return whether the printed tuples mirror this one; clothes are not carried over."""
        for one in self.printed:
            if (one.descriptor, one.attribute) == (cells["descriptor"].lower(), cells["attribute"].lower()):
                return next(mark for mark, means in MARKS.items() if means is one.mirrored)
        return "no" if cells["dimension"] == "attire" else ""


def _group(cells: Cells) -> tuple[str, str, str]:
    return cells["dimension"], cells["descriptor"], "women" if cells["term"] in COUNTERPARTS else "men"


def complete(rows: Sequence[Row]) -> list[Cells]:
    """Return the rows of `tidy_rows` with drafts in their empty cells; the column `drafted` names those of a row."""
    drafts = Drafts(rows)
    own = [{*cells.get("drafted", "").split()} for cells in drafts.rows]
    for column in DRAFTED:
        draft: Callable[[Cells], str] = getattr(drafts, column)
        for cells, drafted in zip(drafts.rows, own, strict=True):
            if not cells[column] and (value := draft(cells)):
                cells[column] = value
                drafted.add(column)
    for cells, drafted in zip(drafts.rows, own, strict=True):
        cells["drafted"] = " ".join(column for column in DRAFTED if column in drafted)
    return drafts.rows


def without(rows: Iterable[Cells]) -> dict[str, list[Cells]]:
    """Return by column the rows in which it is empty though a test needs it."""
    found: dict[str, list[Cells]] = {column: [] for column in DRAFTED}
    for cells in rows:
        for column in DRAFTED:
            if not cells[column] and (column != "opposite" or cells["sentiment"] == "negative"):
                found[column].append(cells)
    return found
