"""Factors: what a study varies, the role of each in its claims, and levels that a rule assigns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, cast

import msgspec

from .levels import Levels

RoleName = Literal["group", "context", "by", "sampled", "fixed", "balanced", "repeat"]


class Rotation(msgspec.Struct, frozen=True, tag="rotation"):
    """Each cell gets one of its levels in turn, so that none is confounded with the numbers that it turns by."""

    by: tuple[str, ...]
    """Columns of numbers, whose sum, modulo the number of levels that the cell allows, is the place of the level."""
    only: dict[str, tuple[str, ...]] = {}
    """Cells to which it applies, as allowed values by name; other cells are crossed with all levels."""

    def place(self, values: Sequence[object], count: int) -> int:
        """Return the place of the level among `count` levels, for the cell's values of `by`."""
        return sum(int(str(value)) for value in values) % count


class Draw(msgspec.Struct, frozen=True, tag="draw"):
    """Each cell gets one of its levels by the digest of its names: at random, and the same on every machine."""

    by: tuple[str, ...]
    """Names whose cells draw independently; all others share the draw."""
    seed: int = 0
    only: dict[str, tuple[str, ...]] = {}
    """Cells to which it applies, as allowed values by name; other cells are crossed with all levels."""

    def place(self, values: Sequence[object], count: int) -> int:
        """Return the place of the level among `count` levels, for the cell's values of `by`."""
        text = "\x1f".join(map(str, (self.seed, *values)))
        return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()) % count


class Factor(msgspec.Struct, frozen=True, tag_field="role"):
    """Base of the roles: what varies, with its levels. A study uses the roles below."""

    name: str
    levels: Levels | tuple[str, ...] = ()
    """Its levels: names, or a table. A part has none: it is the column of its name in the table of its whole."""
    parts: tuple[AnyFactor, ...] = ()
    """What its levels are made of or belong to, with roles of their own; a part may have parts."""
    within: tuple[str, ...] = ()
    """Factors or parts named before it that decide which of its levels a cell has: the column of that name in its
    table says with which levels each goes."""
    assigned: Rotation | Draw | None = None
    """The rule that gives each cell one of its levels; None: each cell is crossed with all."""
    controls: tuple[str, ...] = ()
    """Levels that are asked beside the others, and not compared with them: a prior, a neutral word."""
    several: Literal["", "commonest"] = ""
    """Of a part whose column has several values per level: `commonest` takes the one that most levels share."""

    @property
    def role(self) -> RoleName:
        """Return its role."""
        return cast(RoleName, self.__struct_config__.tag)

    @property
    def table(self) -> Levels:
        """Return its levels as a table."""
        return self.levels if isinstance(self.levels, Levels) else Levels(self.levels)

    def all_parts(self) -> Iterator[tuple[Factor, str]]:
        """Yield its parts and theirs, each with the name of what it is a part of."""
        for part in self.parts:
            yield part, self.name
            yield from part.all_parts()


class Group(Factor, frozen=True, tag="group"):
    """What is compared: the two or more groups. Twins differ in it alone."""


class Context(Factor, frozen=True, tag="context"):
    """What the effect of the group is contrasted over, such as praise and blame."""


class By(Factor, frozen=True, tag="by"):
    """What is reported apart, level by level."""


class Sampled(Factor, frozen=True, tag="sampled"):
    """Examples of a larger population, such as words or sentences: the claim is about others like these."""


class Fixed(Factor, frozen=True, tag="fixed"):
    """Levels that are all there are, or that the claim names."""


class Balanced(Factor, frozen=True, tag="balanced"):
    """How something is shown, such as the order of two options: the claim averages over it."""


class Repeat(Factor, frozen=True, tag="repeat"):
    """Repeated draws of one prompt: samples or seeds, which are no independent units."""


AnyFactor = Group | Context | By | Sampled | Fixed | Balanced | Repeat


class Question(msgspec.Struct, frozen=True):
    """One question of a study, where factors have other roles than those they are declared with."""

    name: str
    roles: dict[str, RoleName] = {}
    """Roles by name of factor or part; the others keep theirs."""


class AnswerForm(msgspec.Struct, frozen=True):
    """What a model must be able to prefer: the form of an answer, and which answer is up."""

    form: Literal["label", "option", "continuation", "number", "yes_no", "words", "vector", "image"]
    """`label`: of a class or a lettered option; `option`: the text of one; `continuation`: the likelihood of a text."""
    outcome: str = ""
    """Column of observations that holds it."""
    answers: tuple[str, ...] = ()
    """The possible answers, as names or as the columns of the trial that hold their texts; empty: any."""
    up: tuple[str, ...] = ()
    """Answers that raise the measure; empty: a larger outcome does."""
