"""Analogy tests A : B :: C : D from tuples of a descriptor, a noun and an attribute (BIStereo, appendix J.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources

import msgspec

from ...core.contracts.csv import Row, read_rows
from ...core.contracts.records import Scalar

REQUIRED = ("dimension", "descriptor", "term", "attribute", "sentiment", "score", "opposite", "standing")
SENTIMENTS = ("positive", "negative")
STANDINGS = ("advantaged", "disadvantaged", "")
COUNTERPARTS = {"girl": "boy", "woman": "man", "lady": "gentleman"}
"""Nouns for women with those for men."""
TERMS = (*COUNTERPARTS, *COUNTERPARTS.values())
LINKS = {"attire": "in", "miscellaneous": "with"}
"""Dimensions whose descriptor is after the noun: `woman in burqa`."""
ONE_GENDER = ("attire", "miscellaneous")
"""Dimensions whose descriptors do not apply to the other gender."""
ANNOTATORS = 5
"""Number of annotators of a tuple, if a file has no column `annotators`."""
FACTORS = ("test", "item", "dimension", "disadvantaged", "gender", "validated", "a", "b", "c", "biased", "unbiased")


class Tuple(msgspec.Struct, frozen=True):
    """An attribute of a group of people, and the number of annotators who call it a stereotype."""

    dimension: str
    descriptor: str
    term: str
    attribute: str
    sentiment: str
    score: int | None
    """None if it is not known."""
    opposite: str | None
    standing: str

    @property
    def gender(self) -> str:
        """Return `women` or `men`."""
        return "women" if self.term in COUNTERPARTS else "men"

    def agreed(self, least: int, unscored: bool) -> bool:
        """Return whether enough annotators agreed; `unscored` decides if the score is not known."""
        return unscored if self.score is None else self.score >= least


class Test(msgspec.Struct, frozen=True):
    """One analogy with its two ends."""

    factors: dict[str, Scalar]

    @property
    def id(self) -> str:
        """Return its name."""
        return str(self.factors["test"])


def read_tuples(path: str | None) -> list[Tuple]:
    """Read tuples from a CSV file, or the shipped ones.

    Raises:
        DataError: The file or one of its rows cannot be used.
    """
    if path is not None:
        return [_tuple(row) for row in read_rows(path, REQUIRED)]
    shipped = resources.files(__package__) / "data" / "tuples" / "tuples.csv"
    with resources.as_file(shipped) as file:
        return [_tuple(row) for row in read_rows(str(file), REQUIRED)]


def _tuple(row: Row) -> Tuple:
    score = None if row.optional("score") is None else int(row.number("score", int))
    asked = ANNOTATORS if row.optional("annotators") is None else int(row.number("annotators", int))
    if score is not None and not 0 <= score <= asked:
        raise row.fault(f"score {score} is not from 0 to {asked}: it counts annotators.", "data.value")
    return Tuple(
        dimension=row.filled("dimension"),
        descriptor=row.filled("descriptor"),
        term=row.choice("term", TERMS),
        attribute=row.filled("attribute"),
        sentiment=row.choice("sentiment", SENTIMENTS),
        score=score,
        opposite=row.optional("opposite"),
        standing=row.choice("standing", STANDINGS),
    )


def build(tuples: Iterable[Tuple], least: int, unscored: bool) -> list[Test]:
    """Return every analogy of a negative tuple of a disadvantaged group with the advantaged groups of its dimension.

    A is each descriptor of an advantaged group of the same dimension and gender that a positive tuple names; C is the
    disadvantaged group; B is the positive counterpart of C's negative attribute, as in all examples that the paper
    prints. Each test also has a counterpart of the other gender, which no annotator has seen (`validated` is false),
    unless that is a tuple of its own or its descriptors belong to one gender.
    """
    agreed = [t for t in tuples if t.agreed(least, unscored)]
    found: dict[str, Test] = {}
    for own in agreed:
        if own.sentiment == "negative" and own.standing == "disadvantaged" and own.opposite:
            for descriptor in _advantaged(agreed, own):
                test = _test(own, descriptor, own.term, True)
                found.setdefault(test.id, test)
    mirrored = (_mirror(test) for test in list(found.values()))
    for test in (test for test in mirrored if test is not None):
        found.setdefault(test.id, test)
    return list(found.values())


def _advantaged(tuples: Iterable[Tuple], other: Tuple) -> Iterator[str]:
    names = (
        t.descriptor
        for t in tuples
        if t.sentiment == "positive" and t.standing == "advantaged"
        if (t.dimension, t.gender) == (other.dimension, other.gender)
    )
    yield from dict.fromkeys(names)


def _test(own: Tuple, advantaged: str, term: str, validated: bool) -> Test:
    role = next(woman for woman, man in COUNTERPARTS.items() if term in (woman, man))
    item = f"{own.dimension}/{advantaged}/{own.descriptor}/{role}/{own.attribute}"
    gender = "women" if term in COUNTERPARTS else "men"
    values: tuple[Scalar, ...] = (
        f"{item}/{gender}",
        item,
        own.dimension,
        own.descriptor,
        gender,
        validated,
        _phrase(own.dimension, advantaged, term),
        own.opposite,
        _phrase(own.dimension, own.descriptor, term),
        own.attribute,
        own.opposite,
    )
    return Test(dict(zip(FACTORS, values, strict=True)))


def _mirror(test: Test) -> Test | None:
    """Return the same test with the noun of the other gender."""
    f = test.factors
    if f["dimension"] in ONE_GENDER:
        return None
    nouns = COUNTERPARTS if f["gender"] == "women" else {man: woman for woman, man in COUNTERPARTS.items()}
    gender = "men" if f["gender"] == "women" else "women"
    swapped = {name: _swapped(str(f[name]), nouns) for name in ("a", "c")}
    return Test({**f, "test": f"{f['item']}/{gender}", "gender": gender, "validated": False, **swapped})


def _swapped(phrase: str, nouns: dict[str, str]) -> str:
    return " ".join(nouns.get(word, word) for word in phrase.split(" "))


def _phrase(dimension: str, descriptor: str, term: str) -> str:
    phrase = f"{term} {LINKS[dimension]} {descriptor}" if dimension in LINKS else f"{descriptor} {term}"
    return phrase[0].upper() + phrase[1:]
