"""Analogy tests A : B :: C : D from tuples of a descriptor, a noun and an attribute (BIStereo, appendix J.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import asdict

from ...core.design import AnswerForm, By, Design, Group, Levels, Sampled, crossed
from ...core.design.factors import AnyFactor
from ...core.design.levels import Value
from .terms import CONTROL, PRIOR
from .tuples_file import COUNTERPARTS, Tuple, gender_of

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


PARTS = (By("dimension"), Sampled("people"), Sampled("meaning"), By("gender"))
COLUMNS = {name: name if name in ("test", *(part.name for part in PARTS)) else f"test.{name}" for name in FACTORS}


def build(tuples: Iterable[Tuple], least: int, unscored: bool, *, unmarked: bool = False) -> Levels:
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

    Returns:
        A row per test, with the columns of `FACTORS` and the noun of both groups.
    """
    agreed = [t for t in tuples if t.agreed(least, unscored)]
    joined = list(crossed({"below": _disadvantaged(agreed), "above": _advantaged(agreed)}, "{below}/{above}").rows())
    phrases = {(t.descriptor, t.term): t.phrase for t in agreed if t.phrase}
    # Only the paper's nouns have a counterpart of the other gender.
    paired = (row for row in joined if str(row["term"]) in OTHERS)
    mirrored = (row for row in paired if (row["unmarked"] if unmarked else row["mirrored"] and row["fits"]))
    parts = [name for t in agreed[:1] for name in t.parts]
    rows = [_test(row, str(row["term"]), True, phrases) | {name: row[name] for name in parts} for row in joined]
    rows += [_test(row, OTHERS[str(row["term"])], False, phrases) for row in mirrored]
    distinct: dict[Value, dict[str, Value]] = {}
    for row in rows:
        distinct.setdefault(row["name"], row)
    return Levels.of_rows(distinct.values())


def test_design(tests: Levels, conditions: tuple[str, ...], own: Sequence[AnyFactor] = ()) -> Design:
    """Return the design: each test under each condition, of which the two groups and the same swapped are compared.

    `own` are parts of the tests that a folder of data declares.
    """
    return Design(
        (
            Sampled("test", tests, (*PARTS, *own)),
            Group("condition", conditions, controls=tuple({PRIOR, CONTROL} & {*conditions})),
        ),
        columns={**COLUMNS, "condition": "condition"},
        answer=AnswerForm("continuation", outcome="choice", answers=("biased", "unbiased"), up=("biased",)),
    )


def _disadvantaged(tuples: Iterable[Tuple]) -> Levels:
    return Levels.of_rows(
        _columns(t) | {"name": str(at), "gender": t.gender, "unmarked": t.dimension not in ONE_GENDER}
        for at, t in enumerate(tuples)
        if t.dimension and t.sentiment == "negative" and t.standing == "disadvantaged" and t.opposite
    )


def _columns(one: Tuple) -> dict[str, Value]:
    return {name: value for name, value in asdict(one).items() if name != "parts"} | one.parts


def _advantaged(tuples: Iterable[Tuple]) -> Levels:
    """Return the advantaged groups of each dimension and gender, and whether they may be mirrored."""
    fits: dict[tuple[str, str, str], bool] = {}
    for t in tuples:
        if t.sentiment == "positive" and t.standing == "advantaged":
            group = t.dimension, t.gender, t.descriptor
            fits[group] = fits.get(group, False) or bool(t.mirrored)
    return Levels.of_rows(
        {"name": "/".join(group), **dict(zip(("dimension", "gender", "advantaged"), group, strict=True)), "fits": fit}
        for group, fit in fits.items()
    )


def _test(
    row: Mapping[str, Value], term: str, validated: bool, phrases: Mapping[tuple[str, str], str]
) -> dict[str, Value]:
    role = next((woman for woman, man in COUNTERPARTS.items() if term in (woman, man)), term)
    dimension, descriptor, advantaged = (str(row[name]) for name in ("dimension", "descriptor", "advantaged"))
    item = f"{dimension}/{advantaged}/{descriptor}/{role}/{row['attribute']}"
    gender = str(row["gender"]) if validated else gender_of(term)

    def phrase(described: str) -> str:
        return phrases.get((described, term)) or _phrase(dimension, described, term)

    return {
        "name": f"{item}/{gender}",
        "item": item,
        "dimension": dimension,
        "disadvantaged": descriptor,
        "people": row["people"],
        "meaning": row["meaning"],
        "gender": gender,
        "validated": validated,
        "a": phrase(advantaged),
        "b": row["opposite"],
        "c": phrase(descriptor),
        "biased": row["attribute"],
        "unbiased": row["opposite"],
        "term": term,
    }


def _phrase(dimension: str, descriptor: str, term: str) -> str:
    phrase = f"{term} {LINKS[dimension]} {descriptor}" if dimension in LINKS else f"{descriptor} {term}"
    return phrase[0].upper() + phrase[1:]
