"""The sums of the measures that one rests on, side by side, and how its value follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np

from .declaration import Declaration
from .declared_rows import Part
from .intervals import Array, ratio
from .measures import DeclaredMeasure, Derived, SummedMeasure
from .multiway import Cells
from .recipes import EffectSize, Function, Range, Recipe, called
from .summing import Summed, stacked


class Joint(msgspec.Struct, frozen=True, dict=True):
    """The sums of the measures that one rests on, side by side, and how its value follows from them."""

    cells: Cells
    """Sums by the clusters; a unit is a group."""
    value: Function
    range: Range
    effect: EffectSize | None
    recipe: Recipe | None
    """Of a measure with sums of its own."""
    ways: tuple[str, ...]
    """How rows are clustered; none where every row is independent."""

    @property
    def sums(self) -> Array:
        """Return the sums of all cells, shape (cells, units, sides, columns); of one way these are its clusters."""
        return self.cells.sums

    @cached_property
    def totals(self) -> Array:
        """Return the sums of all clusters, shape (units, sides, columns)."""
        return self.cells.totals

    @property
    def read(self) -> Cells:
        """Return the cells with the columns of their sums that statistics read."""
        return self.cells if self.recipe is None else Cells(self.cells.codes, self.sums[..., : self.recipe.reads])

    @property
    def tested(self) -> Function:
        """Return what is compared with the neutral value."""
        return self.value if self.recipe is None else self.recipe.tested or self.value

    @property
    def ranges(self) -> list[Range]:
        """Return what each of the statistics can be that are drawn together."""
        own = [] if self.effect is None or self.aside else [self.effect.range]
        return [self.range, *own, self.range][: self.width - self.aside]

    @property
    def aside(self) -> bool:
        """Return whether the effect size has an interval of its own."""
        return self.effect is not None and self.effect.resamples is not None

    @property
    def width(self) -> int:
        """Return how many statistics there are."""
        return 1 + (self.effect is not None) + (self.tested is not self.value)

    def statistics(self, totals: Array, *, drawn: bool = False) -> Array:
        """Return the value, its effect size, and last what is compared with neutral, where that is another.

        If `drawn`, only what is drawn together.
        """
        value = self.value(totals)
        found = [value]
        if self.effect is not None and not (drawn and self.aside):
            found.append(self.effect.of(value if self.effect.of_value else totals))
        if self.tested is not self.value:
            found.append(self.tested(totals))
        return np.stack(found, axis=-1)


def join(measure: DeclaredMeasure, part: Part, design: Declaration, tables: Sequence[Cells]) -> Joint:
    """Put the sums of the measures side by side that `measure` rests on."""
    if not isinstance(measure, Derived):
        assert isinstance(measure, SummedMeasure)
        recipe = _recipe(measure)
        if recipe.effect is not None:
            recipe = recipe._replace(effect=recipe.effect._replace(resamples=measure.resamples_of_effect))
        return Joint(tables[0], recipe.value, recipe.range, recipe.effect, recipe, part.ways)
    # Measures of one side and of two meet in one: a cluster then brings all that it has.
    every = [own.sums for own in tables]
    alike = len({own.shape[-2] for own in every}) == 1
    flat = [own if alike else own.reshape(*own.shape[:-2], 1, own.shape[-2] * own.shape[-1]) for own in every]
    counts = [own[..., :1] if alike else own[..., :1].sum(axis=-2, keepdims=True) for own in every]
    shapes = [own.shape[-2:] for own in every]
    ends = np.cumsum([1, *(own.shape[-1] for own in flat)])

    def value(totals: Array) -> Array:
        pieces = [totals[..., low:high] for low, high in zip(ends[:-1], ends[1:], strict=True)]
        if not alike:
            pieces = [own.reshape(*own.shape[:-2], *shape) for own, shape in zip(pieces, shapes, strict=True)]
        bases = zip(design.bases(measure), pieces, strict=True)
        if measure.average:
            levels = {base.key: base.recipe().value(piece[..., None, :]) for base, piece in bases}
            return np.asarray(_derived(measure, design, levels).mean(axis=-1))
        return _derived(measure, design, {base.key: _recipe(base).value(piece) for base, piece in bases})

    sums = Cells(tables[0].codes, np.concatenate([np.sum(counts, axis=0), *flat], axis=-1))
    return Joint(sums, value, measure.limits, None, None, part.ways)


def _derived(measure: DeclaredMeasure, design: Declaration, values: dict[str, Array]) -> Array:
    if not isinstance(measure, Derived):
        return values[measure.key]
    return measure.scale * called(measure.by, [_derived(own, design, values) for own in design.parts(measure)])


def _recipe(measure: SummedMeasure) -> Recipe:
    """Return the recipe of one side for rows whose strata, or levels that weigh alike, stand on several."""
    recipe = measure.recipe()
    if measure.strata is None and not measure.average:
        return recipe

    def over(function: Function) -> Function:
        if measure.average:
            return lambda totals: np.asarray(function(totals[..., None, :]).mean(axis=-1))
        return lambda totals: function(totals.sum(axis=-2, keepdims=True))

    def weighted(sums: Array) -> Array:
        assert recipe.deviations is not None
        found: Array = ratio(recipe.deviations(sums), sums[..., 0].sum(axis=0)).sum(axis=-1, keepdims=True)
        return found

    effect = recipe.effect
    if effect is not None and not effect.of_value:
        effect = effect._replace(of=over(effect.of))
    return recipe._replace(
        value=over(recipe.value),
        effect=effect,
        tested=None if recipe.tested is None else over(recipe.tested),
        neutral=None if recipe.neutral is None else over(recipe.neutral),
        deviations=weighted if measure.average and recipe.deviations is not None else None,
        bounds=lambda sample: recipe.bounds(sample._replace(units=sample.sides) if measure.average else sample),
    )


def joint_of(measure: DeclaredMeasure, groups: Sequence[Summed], design: Declaration) -> Joint:
    """Return what a measure rests on in some groups; each is a unit."""
    tables = [stacked(own) for own in zip(*(group.tables for group in groups), strict=True)]
    joint = join(measure, groups[0].part, design, tables)
    if joint.recipe is not None and joint.recipe.levels is not None:
        # A level without a readable row is none of the groups that are compared.
        there = joint.totals[..., 0].any(axis=0)
        sums = joint.sums[..., there | (there.sum() < 2), :]
        joint = msgspec.structs.replace(joint, cells=Cells(joint.cells.codes, sums))
    return joint
