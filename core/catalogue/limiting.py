"""`--limit N` and `--quick`: a small, balanced part of any study, which says what it is.

Whole units are drawn, such as a pair with both sentences. Of a study with a design they are a sample of it, balanced
over the cells, orders and all that is sampled; of any other, the same number of each cell, by the order of a digest of
their names. A smaller part lies within a larger one, so that its answers are used again. Where an option of the probe
already takes a part (`per_cell`), units are drawn from that. A study that declares nothing is taken as the study of the
same probe that does.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np

from ..contracts import LargeStage, Stage, Trial
from ..contracts.errors import UsageError
from ..contracts.options import short
from ..contracts.records import Scalar
from ..contracts.sizes import FEWEST_UNITS
from ..design import Design, DesignedStage, Rows
from ..design.stage import FollowingStage

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
Levels = tuple[Scalar, ...]


class Limit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What part of a study is asked."""

    asked: int | None = None
    """Most units of the first stage; None: `--quick`."""
    unit: tuple[str, ...] = ()
    """Factors whose levels tell units apart."""
    cells: tuple[str, ...] = ()
    """Factors whose levels make the cells."""
    also: dict[str, Any] = {}
    """Further options of the probe that `--quick` sets in this study."""

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
    limiting = {name: value for name, value in assignments.items() if name in taken}
    remaining = {name: value for name, value in assignments.items() if name not in limiting}
    if len(limiting) == len(NAMES) and limiting["quick"] is not False and limiting["limit"] is not None:
        raise UsageError("--limit and --quick exclude each other. Leave one out.", code="options.conflict")
    if (limit := limiting.get("limit")) is not None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise UsageError(f"limit is {short(limit)}. Give a whole number above 0.", code="limit.value", value=limit)
        return remaining, Limit(asked=limit)
    if (quick := limiting.get("quick", False)) not in (True, False, None):
        raise UsageError(f"quick is {short(quick)}. Give true or false.", code="limit.value", value=quick)
    return remaining, Limit() if quick else None


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
    declared = msgspec.structs.replace(limit, unit=entry.unit, cells=entry.cells)
    limited = msgspec.structs.replace(study, limit=declared)
    stage = catalogue.instrument(limited).main_stage
    drawn = stage.drawn if isinstance(stage, Part) else None
    # A study of which every unit is asked, but with fewer samples, is a part of itself.
    return study if drawn is None or (drawn.units == drawn.of and not limit.also) else limited


def _undeclared(catalogue: Catalogue, study: Study, limit: Limit) -> UsageError:
    factors = catalogue.instrument(study).main_stage.factors
    return UsageError(
        f"study {study.name!r} does not say which trials belong together, so that {limit.words} could break pairs. Use "
        "its own options, or add to its file a table [limit] with unit = [...], the factors that name a unit, all "
        f"trials of which are asked or none. Its factors are {', '.join(factors)}.",
        code="limit.undeclared",
        factors=tuple(factors),
    )


def main_of(stages: Sequence[Stage]) -> Stage:
    """Return the first stage that is not auxiliary."""
    return next((stage for stage in stages if not stage.rules.auxiliary), stages[0])


def limit_stages(stages: Sequence[Stage], limit: Limit | None) -> tuple[Stage, ...]:
    """Return stages of which the first that is not auxiliary asks only the drawn units."""
    if limit is None or not limit.unit:
        return tuple(stages)
    first = main_of(stages)
    kind = type(f"Limited{type(first).__name__}", (_way(first, limit), type(first)), {})
    limited: Any = object.__new__(kind)
    limited.__dict__.update(first.__dict__, limit=limit)
    return tuple(limited if stage is first else _prepared(stage, limited) for stage in stages)


def _prepared(stage: Stage, limited: Stage) -> Stage:
    """Return another stage beside a limited one."""
    if isinstance(stage, FollowingStage) and isinstance(limited, DesignedPart):
        return stage.following(limited)
    return stage


def _way(stage: Stage, limit: Limit) -> type[Part]:
    if not isinstance(stage, DesignedStage):
        return LimitedStage
    if _is_of_design(stage, limit):
        return SampledPart
    return DrawnPart if {*limit.unit, *limit.cells} <= {*stage.design.trial_columns} else LimitedStage


def _is_of_design(stage: DesignedStage, limit: Limit) -> bool:
    """Return whether the units of a limit are those of the stage's design, which tells its cells apart."""
    design = stage.design
    groups = {name for name in design.named("group") if design.vocabulary.term(name).factor in design.unit_factors}
    if not {*limit.cells} <= {*design.named("context", "by"), *groups}:
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
        size = f"{drawn.units:,} of {drawn.of:,} units ({' and '.join(self.limit.unit)})"
        by = f", at most {drawn.each:,} of each of {cells:,} cells ({', '.join(self.limit.cells)})" if cells > 1 else ""
        least, most = min(drawn.sizes), max(drawn.sizes)
        uneven = f" In the whole study cells have {least:,} to {most:,} units, so their weights differ from those here."
        return part_words(self.limit, f"{size}{by}, drawn by a fixed rule") + (uneven if least < most else "")


class LimitedStage(Part):
    """The same of a stage of which nothing is declared: its trials are all made, and most are left out."""

    @cached_property
    def drawn(self) -> Drawn:
        """Return the units that are asked."""
        return draw_units(super().trials({}), self.limit)  # type: ignore[safe-super]  # the stage's own

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

    @property
    def rows(self) -> Rows | None:
        """Return the trials of the units that are drawn."""
        return cast(Rows, self.drawn.trials)


class SampledPart(DesignedPart):
    """The same where the units are those of the design: a sample of it."""

    @cached_property
    def drawn(self) -> Drawn:
        """Return the units that are asked."""
        return sample_units(self.design, self.limit, super(DesignedPart, self).rows)


class DrawnPart(DesignedPart):
    """The same where the units are others: they are drawn as from trials, by the columns of the design."""

    @cached_property
    def drawn(self) -> Drawn:
        """Return the units that are asked."""
        return draw_places(self.design, self.limit, super(DesignedPart, self).rows)


def assigned(name: str, value: object) -> str:
    """Return an option as `--set` takes it; the items of a list are parted by commas."""
    return f"{name}={','.join(map(str, value)) if isinstance(value, list | tuple) else value}"


def part_words(limit: Limit, told: str) -> str:
    """Return the sentences that say that a run asked a part of its study."""
    sets = " ".join(f"--set {assigned(name, value)}" for name, value in limit.also.items())
    also = f", as with {sets}" if sets else ""
    return f"A part of the study ({limit.words}): {told}{also}. Intervals are wider than those of the whole study."


def draw_units(trials: Iterable[Trial], limit: Limit) -> Drawn:
    """Return the trials of the units that a limit leaves, with equally many units of each cell that has as many.

    Raises:
        UsageError: the limit is below one unit of each cell.
    """
    named = (
        (tuple(trial.factors[name] for name in limit.cells), tuple(trial.factors[name] for name in limit.unit), trial)
        for trial in trials
    )
    return _drawn(named, limit)


def draw_places(design: Design, limit: Limit, rows: Rows | None = None) -> Drawn:
    """Return what `draw_units` returns of the trials of a design, or of some, as their places, without making any."""
    cells, units = (
        zip(*(design.column(name, rows) for name in names), strict=True) if names else repeat(())
        for names in (limit.cells, limit.unit)
    )
    places = np.arange(design.size) if rows is None else rows
    drawn = _drawn(zip(cells, units, places.tolist(), strict=False), limit)
    return drawn._replace(trials=np.array(drawn.trials, np.int64))


def _drawn(trials: Iterable[tuple[Levels, Levels, Any]], limit: Limit) -> Drawn:
    """Return the drawn of trials, or of their places, each with the levels of its cell and of its unit."""
    most = limit.asked if limit.asked is not None else QUICK_TRIALS
    cells: dict[Levels, _Cell] = {}
    total = 0
    for place, (cell, unit, trial) in enumerate(trials):
        cells.setdefault(cell, _Cell(most)).see(trial, place, unit)
        total += 1
    sizes = tuple(len(cell.units) for cell in cells.values())
    if limit.asked is None:
        each = _quick_each(total / max(1, sum(sizes)) * len(sizes))
    else:
        each = _each(sizes, limit.asked)
    if not each and sizes:
        raise _too_small(limit, len(sizes))
    chosen = sorted((pair for cell in cells.values() for pair in cell.smallest(each)), key=lambda pair: pair[0])
    units = sum(min(each, size) for size in sizes)
    return Drawn([trial for _, trial in chosen], each, units, sum(sizes), sizes)


def sample_units(design: Design, limit: Limit, rows: Rows | None = None) -> Drawn:
    """Return the trials, by place, of the units that a limit leaves: a sample of the design, without making any.

    Args:
        design: The design.
        limit: The limit.
        rows: Trials to draw from; None: all.

    Raises:
        UsageError: the limit is below one unit of each cell.
    """
    places = np.arange(design.size) if rows is None else rows
    cells = zip(*(design.column(name, rows) for name in limit.cells), strict=True) if limit.cells else repeat(())
    cell_of = dict(zip(places.tolist(), cells, strict=False))
    first = places[np.unique(design.units[places], return_index=True)[1]].tolist()
    sizes = tuple(Counter(cell_of[place] for place in first).values())
    if limit.asked is not None and limit.asked < len(sizes):
        raise _too_small(limit, len(sizes))
    if limit.asked is None:
        drawn = design.first(rows=rows, per_cell=_quick_each(len(places) / max(1, sum(sizes)) * len(sizes)))
    else:
        drawn = design.first(rows=rows, units=limit.asked)
    asked = Counter(cell_of[place] for place in np.intersect1d(first, drawn).tolist())
    return Drawn(drawn, max(asked.values(), default=0), asked.total(), len(first), sizes)


def _quick_each(trials: float) -> int:
    """Return how many units of each cell `--quick` asks, where one unit of each is so many trials."""
    trials = max(1.0, trials)
    return max(LEAST, int(QUICK_TRIALS / trials), min(FEWEST_UNITS, int(QUICK_MOST / trials)))


class _Cell:
    """The units of a cell; of those that may be drawn also the trials, so that memory does not grow with the study."""

    def __init__(self, most: int) -> None:
        self.most = max(most, FEWEST_UNITS)
        self.units: dict[Levels, bytes] = {}
        self.near: dict[bytes, list[tuple[int, Any]]] = {}
        self.farthest: bytes | None = None

    def see(self, trial: Any, place: int, unit: Levels) -> None:
        digest = self.units.get(unit)
        if digest is None:
            digest = self.units[unit] = hashlib.sha256(msgspec.json.encode(unit)).digest()[:16]
        if self.farthest is not None and digest > self.farthest:
            return
        self.near.setdefault(digest, []).append((place, trial))
        if len(self.near) > 2 * self.most:
            nearest = sorted(self.near)[: self.most]
            self.near, self.farthest = {digest: self.near[digest] for digest in nearest}, nearest[-1]

    def smallest(self, count: int) -> Iterator[tuple[int, Any]]:
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


def _too_small(limit: Limit, least: int) -> UsageError:
    return UsageError(
        f"{limit.words} is less than one unit ({' and '.join(limit.unit)}) of each of its {least} cells "
        f"({', '.join(limit.cells)}). The least is --limit {least}.",
        code="limit.too-small",
        least=least,
    )
