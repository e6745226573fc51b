"""Analogy tests A : B :: C : D from tuples of a descriptor, a noun and an attribute (BIStereo, appendix J.1)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...core.contracts.records import Scalar
from .tuples_file import COUNTERPARTS, Tuple

LINKS = {"attire": "in", "miscellaneous": "with"}
"""Dimensions whose descriptor is after the noun: `woman in burqa`."""
ONE_GENDER = ("attire", "miscellaneous")
"""Dimensions that were never mirrored before files said which tuples may be."""
OTHERS = COUNTERPARTS | {man: woman for woman, man in COUNTERPARTS.items()}
"""Nouns with those of the other gender."""
FACTORS = (
    *("test", "item", "dimension", "disadvantaged", "people", "meaning", "gender", "validated"),
    *("a", "b", "c", "biased", "unbiased"),
)


class Test(msgspec.Struct, frozen=True):
    """One analogy with its two ends."""

    factors: dict[str, Scalar]
    term: str
    """The noun of both groups."""

    @property
    def id(self) -> str:
        """Return its name."""
        return str(self.factors["test"])


def build(tuples: Iterable[Tuple], least: int, unscored: bool, *, unmarked: bool = False) -> list[Test]:
    """Return every analogy of a negative tuple of a disadvantaged group with the advantaged groups of its dimension.

    A is each descriptor of an advantaged group of the same dimension and gender that a positive tuple names; C is the
    disadvantaged group; B is the positive counterpart of C's negative attribute, as in all examples that the paper
    prints. A test whose tuples of both groups say that they may be mirrored has a counterpart of the other gender,
    which no annotator has seen (`validated` is false), unless that is a tuple of its own.

    Args:
        tuples: of the file.
        least: number of annotators who must agree.
        unscored: whether tuples without a score are used.
        unmarked: mirror every test but those of attire and miscellaneous, whatever its tuples say.
    """
    agreed = [t for t in tuples if t.agreed(least, unscored)]
    found: dict[str, Test] = {}
    mirrored: list[Test] = []
    for own in agreed:
        if own.dimension and own.sentiment == "negative" and own.standing == "disadvantaged" and own.opposite:
            for descriptor, fits in _advantaged(agreed, own).items():
                test = _test(own, descriptor, own.term, True)
                found.setdefault(test.id, test)
                if own.dimension not in ONE_GENDER if unmarked else own.mirrored and fits:
                    mirrored.append(_test(own, descriptor, OTHERS[own.term], False))
    for test in mirrored:
        found.setdefault(test.id, test)
    return list(found.values())


def _advantaged(tuples: Iterable[Tuple], other: Tuple) -> dict[str, bool]:
    """Return the advantaged groups of a tuple's dimension and gender, and whether they may be mirrored."""
    names: dict[str, bool] = {}
    for t in tuples:
        if t.sentiment == "positive" and t.standing == "advantaged":
            if (t.dimension, t.gender) == (other.dimension, other.gender):
                names[t.descriptor] = names.get(t.descriptor, False) or bool(t.mirrored)
    return names


def _test(own: Tuple, advantaged: str, term: str, validated: bool) -> Test:
    role = next(woman for woman, man in COUNTERPARTS.items() if term in (woman, man))
    item = f"{own.dimension}/{advantaged}/{own.descriptor}/{role}/{own.attribute}"
    gender = "women" if term in COUNTERPARTS else "men"
    values: tuple[Scalar, ...] = (
        f"{item}/{gender}",
        item,
        own.dimension,
        own.descriptor,
        own.people,
        own.meaning,
        gender,
        validated,
        _phrase(own.dimension, advantaged, term),
        own.opposite,
        _phrase(own.dimension, own.descriptor, term),
        own.attribute,
        own.opposite,
    )
    return Test(dict(zip(FACTORS, values, strict=True)), term)


def _phrase(dimension: str, descriptor: str, term: str) -> str:
    phrase = f"{term} {LINKS[dimension]} {descriptor}" if dimension in LINKS else f"{descriptor} {term}"
    return phrase[0].upper() + phrase[1:]
