"""`--limit N` and `--quick`: a small, balanced part of any study, which says what it is.

A study that says how much of each cell it asks by an option of its own (`per_cell`) is made smaller by that, because
the probe then balances what else it must, such as the order of options; a value that is set stays the most. Of any
other study whole units are drawn, such as a pair with both sentences: the same number of each cell, by the order of a
digest of their names. A smaller part lies within a larger one, so that its answers are used again. A study that
declares nothing is taken as the study of the same probe that does.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np

from ..contracts import LargeStage, Stage, Trial
from ..contracts.errors import UsageError
from ..contracts.options import short
from ..contracts.probe import count_trials
from ..contracts.records import Scalar
from ..contracts.sizes import FEWEST_UNITS
from ..contracts.words import counted
from ..design import Design, DesignedStage, Rows

if TYPE_CHECKING:
    import polars as pl

    from .registry import Limits
    from .study import Catalogue, Study

QUICK_TRIALS, QUICK_MOST = 400, 1000
"""With `--quick`: about as many trials of the first stage; where that leaves a cell fewer than `FEWEST_UNITS` units, so
many as it needs, up to the second number."""
LEAST = 2
"""Units of each cell with `--quick`, whatever they cost."""
NAMES = ("limit", "quick")
"""Assignments that every study takes, unless its probe has an option of that name."""


class Limit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What part of a study is asked."""

    asked: int | None = None
    """Most units of the first stage; None: `--quick`."""
    option: str = ""
    """The option of the probe that makes the study smaller; empty: units are drawn."""
    unit: tuple[str, ...] = ()
    """Factors whose levels tell units apart."""
    cells: tuple[str, ...] = ()
    """Factors whose levels make the cells."""
    also: dict[str, Any] = {}
    """Further options of the probe that `--quick` sets in this study."""
    told: str = ""
    """What is asked of how much, where `option` says it."""

    @property
    def words(self) -> str:
        """Return the limit as a user gives it."""
        return "--quick" if self.asked is None else f"--limit {self.asked}"


class Drawn(NamedTuple):
    """The units that are drawn."""

    trials: Sequence[Trial] | Rows
    """Their trials, or the places of these in the design."""
    each: int
    """Most units of a cell."""
    units: int
    of: int
    """Units of the whole study."""
    sizes: tuple[int, ...]
    """Units of each cell of the whole study."""


def split_limit(options: type[msgspec.Struct], assignments: Mapping[str, Any]) -> tuple[dict[str, Any], Limit | None]:
    """Return assignments without the limit, and the limit, if one is set.

    Raises:
        UsageError: it is no whole number above 0, or both are set.
    """
    taken = set(NAMES) - set(options.__struct_fields__)
    own = {name: value for name, value in assignments.items() if name in taken}
    rest = {name: value for name, value in assignments.items() if name not in own}
    if len(own) == len(NAMES) and own["quick"] is not False and own["limit"] is not None:
        raise UsageError("--limit and --quick exclude each other. Leave one out.", code="options.conflict")
    if (limit := own.get("limit")) is not None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise UsageError(f"limit is {short(limit)}. Give a whole number above 0.", code="limit.value", value=limit)
        return rest, Limit(asked=limit)
    if (quick := own.get("quick", False)) not in (True, False, None):
        raise UsageError(f"quick is {short(quick)}. Give true or false.", code="limit.value", value=quick)
    return rest, Limit() if quick else None


def limit_study(catalogue: Catalogue, study: Study, entry: Limits, limit: Limit) -> Study:
    """Return a part of a study, or the study itself if that is no larger.

    Raises:
        UsageError: it cannot be made so small, or does not say which trials belong together.
    """
    if not entry.declared:
        raise _undeclared(catalogue, study, limit)
    if limit.asked is None and (also := {k: v for k, v in entry.quick.items() if k not in study.options}):
        study = msgspec.structs.replace(study, options=study.options | also)
        limit = msgspec.structs.replace(limit, also=also)
    return (_by_option if entry.option else _by_unit)(catalogue, study, entry, limit)


def _undeclared(catalogue: Catalogue, study: Study, limit: Limit) -> UsageError:
    factors = catalogue.instrument(study).every_stage()[0].factors
    return UsageError(
        f"study {study.name!r} does not say which trials belong together, so that {limit.words} could break pairs. Use "
        "its own options, or add to its file a table [limit] with unit = [...], the factors that name a unit, all "
        f"trials of which are asked or none. Its factors are {', '.join(factors)}.",
        code="limit.undeclared",
        factors=tuple(factors),
    )


def _by_option(catalogue: Catalogue, study: Study, entry: Limits, limit: Limit) -> Study:
    name = entry.option

    def made(value: int | None) -> tuple[Study, int]:
        tried = msgspec.structs.replace(study, options=study.options | ({} if value is None else {name: value}))
        first = catalogue.instrument(tried).every_stage()[0]
        return tried, count_trials(first, {}) // first.counting.trials

    first = catalogue.instrument(study).every_stage()[0]
    whole, of = made(None)
    _, least = made(1)
    if limit.asked is not None and limit.asked >= of:
        return whole
    if limit.asked is not None and limit.asked < least:
        raise _too_small(limit, least, first.counting.unit)
    # Every cell has at most so many, so that there are never more than were asked for.
    trials = max(1, least * first.counting.trials)
    value = _quick_each(trials) if limit.asked is None else limit.asked // max(1, least)
    found, units = made(value)
    if units >= of:
        return whole
    told = f"{name} = {value}, {units:,} of {counted(of, first.counting.unit)}"
    return msgspec.structs.replace(found, limit=msgspec.structs.replace(limit, option=name, told=told))


def _by_unit(catalogue: Catalogue, study: Study, entry: Limits, limit: Limit) -> Study:
    own = msgspec.structs.replace(limit, unit=entry.unit, cells=entry.cells)
    made = msgspec.structs.replace(study, limit=own)
    stage = catalogue.instrument(made).every_stage()[0]
    drawn = stage.drawn if isinstance(stage, Part) else None
    # A study of which every unit is asked, but with fewer samples, is a part of itself.
    return study if drawn is None or (drawn.units == drawn.of and not limit.also) else made


def limit_stages(stages: Sequence[Stage], limit: Limit | None) -> tuple[Stage, ...]:
    """Return stages of which the first asks only the drawn units."""
    if limit is None or not limit.unit:
        return tuple(stages)
    first, *others = stages
    way = DesignedPart if isinstance(first, DesignedStage) and _is_of_design(first, limit) else LimitedStage
    kind = type(f"Limited{type(first).__name__}", (way, type(first)), {})
    limited: Any = object.__new__(kind)
    limited.__dict__.update(first.__dict__, limit=limit)
    return (limited, *others)


def _is_of_design(stage: DesignedStage, limit: Limit) -> bool:
    """Return whether the units of a limit are those of the stage's design, which reports its cells apart."""
    design = stage.design
    if stage.rows is not None or not {*limit.cells} <= {*design.named("context", "by")}:
        return False
    units, numbers = [*zip(*(design.column(name) for name in limit.unit), strict=True)], design.units.tolist()
    return len(set(units)) == len(set(numbers)) == len(set(zip(units, numbers, strict=True)))


class Part(LargeStage):
    """A stage that asks a part of its trials. Beside the class of the stage, whose other methods stay."""

    limit: Limit

    @property
    @abstractmethod
    def drawn(self) -> Drawn:
        """Return the units that are asked."""

    def notes(self) -> Sequence[str]:
        """Say first that it is a part, and of what."""
        return [self._said(), *super().notes()]

    def _said(self) -> str:
        drawn, cells = self.drawn, len(self.drawn.sizes)
        if drawn.units == drawn.of:
            return part_words(self.limit, f"all {drawn.of:,} units ({' and '.join(self.limit.unit)})")
        told = f"{drawn.units:,} of {drawn.of:,} units ({' and '.join(self.limit.unit)})"
        by = f", at most {drawn.each:,} of each of {cells:,} cells ({', '.join(self.limit.cells)})" if cells > 1 else ""
        least, most = min(drawn.sizes), max(drawn.sizes)
        uneven = f" In the whole study cells have {least:,} to {most:,} units, so their weights differ from those here."
        return part_words(self.limit, f"{told}{by}, drawn by a fixed rule") + (uneven if least < most else "")


class LimitedStage(Part):
    """The same of a stage of which nothing is declared: its trials are all made, and most are left out."""

    @cached_property
    def drawn(self) -> Drawn:
        """Return the units that are asked."""
        return draw_units(super().trials({}), self.limit, self.counting.unit)  # type: ignore[safe-super]  # the stage's own

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the trials of the units that are drawn, in the order of the study."""
        return iter(cast(Sequence[Trial], self.drawn.trials))

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Count them."""
        return len(self.drawn.trials)

    def alike(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[tuple[Trial, int]]:
        """Yield each of them."""
        return ((trial, 1) for trial in self.trials(earlier))


class DesignedPart(Part, DesignedStage):
    """The same of a stage with a design: only what is asked is made."""

    @cached_property
    def drawn(self) -> Drawn:
        """Return the units that are asked."""
        return draw_rows(self.design, self.limit, self.counting.unit)

    @property
    def rows(self) -> Rows | None:
        """Return the trials of the units that are drawn."""
        return cast(Rows, self.drawn.trials)


def assigned(name: str, value: object) -> str:
    """Return an option as `--set` takes it; the items of a list are parted by commas."""
    return f"{name}={','.join(map(str, value)) if isinstance(value, list | tuple) else value}"


def part_words(limit: Limit, told: str) -> str:
    """Return the sentences that say that a run asked a part of its study."""
    sets = " ".join(f"--set {assigned(name, value)}" for name, value in limit.also.items())
    also = f", as with {sets}" if sets else ""
    return f"A part of the study ({limit.words}): {told}{also}. Intervals are wider than those of the whole study."


def draw_units(trials: Iterable[Trial], limit: Limit, noun: str = "unit") -> Drawn:
    """Return the trials of the units that a limit leaves, with equally many units of each cell that has as many.

    Raises:
        UsageError: the limit is below one unit of each cell.
    """
    most = limit.asked if limit.asked is not None else QUICK_TRIALS
    cells: dict[tuple[Scalar, ...], _Cell] = {}
    total = 0
    for place, trial in enumerate(trials):
        key = tuple(trial.factors[name] for name in limit.cells)
        cells.setdefault(key, _Cell(most)).see(trial, place, tuple(trial.factors[name] for name in limit.unit))
        total += 1
    sizes = tuple(len(cell.units) for cell in cells.values())
    if limit.asked is None:
        each = _quick_each(total / max(1, sum(sizes)) * len(sizes))
    else:
        each = _each(sizes, limit.asked)
    if not each and sizes:
        raise _too_small(limit, len(sizes), noun)
    kept = sorted((pair for cell in cells.values() for pair in cell.smallest(each)), key=lambda pair: pair[0])
    units = sum(min(each, size) for size in sizes)
    return Drawn([trial for _, trial in kept], each, units, sum(sizes), sizes)


def draw_rows(design: Design, limit: Limit, noun: str = "unit") -> Drawn:
    """Return the trials, by place, of the units that a limit leaves: a sample of the design, without making any.

    Raises:
        UsageError: the limit is below one unit of each cell.
    """
    cells = [design.column(name) for name in limit.cells]
    cell_of = [*zip(*cells, strict=True)] if cells else [()] * design.size
    first = np.unique(design.units, return_index=True)[1]
    counts = Counter(cell_of[place] for place in first.tolist())
    sizes = tuple(counts.values())
    if limit.asked is not None and limit.asked < len(sizes):
        raise _too_small(limit, len(sizes), noun)
    if limit.asked is None:
        rows = design.sample(per_cell=_quick_each(design.size / max(1, sum(sizes)) * len(sizes)))
    else:
        rows = design.sample(units=limit.asked)
    drawn = Counter(cell_of[place] for place in np.intersect1d(first, rows).tolist())
    return Drawn(rows, max(drawn.values(), default=0), drawn.total(), len(first), sizes)


def _quick_each(trials: float) -> int:
    """Return how many units of each cell `--quick` asks, where one unit of each is so many trials."""
    trials = max(1.0, trials)
    return max(LEAST, int(QUICK_TRIALS / trials), min(FEWEST_UNITS, int(QUICK_MOST / trials)))


class _Cell:
    """The units of a cell; of those that may be drawn also the trials, so that memory does not grow with the study."""

    def __init__(self, most: int) -> None:
        self.most = max(most, FEWEST_UNITS)
        self.units: set[bytes] = set()
        self.near: dict[bytes, list[tuple[int, Trial]]] = {}
        self.farthest: bytes | None = None

    def see(self, trial: Trial, place: int, unit: tuple[Scalar, ...]) -> None:
        digest = hashlib.sha256(msgspec.json.encode(unit)).digest()[:16]
        self.units.add(digest)
        if self.farthest is not None and digest > self.farthest:
            return
        self.near.setdefault(digest, []).append((place, trial))
        if len(self.near) > 2 * self.most:
            kept = sorted(self.near)[: self.most]
            self.near, self.farthest = {one: self.near[one] for one in kept}, kept[-1]

    def smallest(self, count: int) -> Iterator[tuple[int, Trial]]:
        for digest in sorted(self.near)[:count]:
            yield from self.near[digest]


def _each(sizes: Sequence[int], most: int) -> int:
    """Return the largest number of units of each cell with which there are at most so many in all."""
    if sum(sizes) <= most:
        return max(sizes, default=0)
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(middle, size) for size in sizes) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _too_small(limit: Limit, least: int, noun: str) -> UsageError:
    return UsageError(
        f"{limit.words} is less than one {noun} of each of its cells. The least is --limit {least}.",
        code="limit.too-small",
        least=least,
    )
