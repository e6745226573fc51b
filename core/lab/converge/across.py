"""Several models: whether methods order them alike, and two constructs apart (Campbell and Fiske 1959).

A correlation over models is of two methods that measure one construct (convergent), of one method that measures two, or
of two methods that measure two (discriminant). Evidence that is of the construct, and not of the method, has greater
correlations of the first kind than of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations

import msgspec

from .evidence import Evidence, Judged
from .heterogeneity import Correlated, correlation

FEWEST = 3
"""Models without which there is no order."""


class Kind(StrEnum):
    """What two measures share."""

    CONVERGENT = "one construct, two methods"
    METHOD = "two constructs, one method"
    DISCRIMINANT = "two constructs, two methods"


class Ordered(msgspec.Struct, frozen=True):
    """Whether two measures order the models alike."""

    first: tuple[str, str]
    """Construct and method."""
    second: tuple[str, str]
    kind: Kind
    models: tuple[str, ...]
    """Those with a value of both."""
    found: Correlated


class Matrix(msgspec.Struct, frozen=True):
    """The correlations of all measures, and how often a convergent one exceeds one that is not."""

    correlations: tuple[Ordered, ...]
    exceeding: int = 0
    """Comparisons in which the convergent correlation of a measure is the greater one."""
    comparisons: int = 0
    """Convergent correlations, each with every other correlation of the same measures that is not convergent."""


def matrix(judged: Sequence[Judged]) -> Matrix:
    """Return the rank correlations between methods over the models."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for one in judged:
        for evidence in one.evidence:
            if (value := _ordinal(evidence)) is not None:
                values.setdefault((one.construct, evidence.method), {})[one.model] = value
    found = tuple(_ordered(values))
    compared = list(_compared(found))
    return Matrix(found, sum(compared), len(compared))


def _ordinal(evidence: Evidence) -> float | None:
    """Return what a method orders models by: the common scale, or the row's own value in its direction."""
    if evidence.placed is not None:
        return evidence.placed.value
    if evidence.value is None or evidence.neutral is None:
        return None
    size = abs(evidence.value - evidence.neutral)
    return size if evidence.above else -size


def _ordered(values: Mapping[tuple[str, str], Mapping[str, float]]) -> Iterator[Ordered]:
    for (one, first), (two, second) in combinations(values.items(), 2):
        models = tuple(model for model in first if model in second)
        if len(models) < FEWEST:
            continue
        kind = Kind.CONVERGENT if one[0] == two[0] else Kind.METHOD if one[1] == two[1] else Kind.DISCRIMINANT
        yield Ordered(one, two, kind, models, correlation([first[m] for m in models], [second[m] for m in models]))


def _compared(found: Sequence[Ordered]) -> Iterator[bool]:
    for one in (one for one in found if one.kind is Kind.CONVERGENT):
        for other in (other for other in found if other.kind is not Kind.CONVERGENT):
            if {one.first, one.second} & {other.first, other.second}:
                a, b = one.found.tau, other.found.tau
                if a is not None and b is not None:
                    yield a > b
