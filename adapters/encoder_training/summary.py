"""What the trainings of one split and loss came to, all seeds together: the parameter that the tuning part prefers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from scipy import stats

from ...core.contracts.errors import DataError, UsageError
from .delta_sim import Delta, fold
from .heads import Classified
from .settings import LossName, Result, rank
from .splits import SelectOn, SplitBy

RESULTS = "results.json"


class Pooled(msgspec.Struct, frozen=True):
    """Validation delta-sim, all seeds together."""

    value: float | None
    """Absolute value of `signed`; of `mean` the mean of the categories' absolute values."""
    signed: float | None
    """Mean over seeds of the difference with its sign: below 0, opposed sentences lie nearer than alike ones."""
    low: float | None = None
    """Lower end of the 95 % interval of `signed`, folded at 0."""
    high: float | None = None

    @property
    def reversed(self) -> bool:
        """Tell whether opposed sentences lie nearer than alike ones."""
        return self.signed is not None and self.signed < 0


class Row(msgspec.Struct, frozen=True):
    """One category, or `overall`, or `mean` of the categories."""

    category: str
    before: Pooled
    after: Pooled


class Tried(msgspec.Struct, frozen=True):
    """One value of the parameter."""

    value: float
    tuning: float | None
    """Mean over seeds of the highest delta-sim of the tuning part."""
    seeds: tuple[int, ...]
    epochs: tuple[int, ...]
    """Of each seed's best encoder; 0 is the encoder as it was given."""

    @property
    def as_given(self) -> list[int]:
        """Return the seeds whose encoder stayed as it was given."""
        return [seed for seed, epoch in zip(self.seeds, self.epochs, strict=True) if epoch == 0]


class Summary(msgspec.Struct, frozen=True):
    """One split and loss."""

    model: str
    split: SplitBy
    loss: LossName
    parameter: str
    """`temperature` or `margin`."""
    chosen: Tried
    """The value with the highest mean delta-sim of the tuning parts; validation has no say."""
    rows: tuple[Row, ...]
    tried: tuple[Tried, ...]
    """All values of the parameter, the chosen one among them."""
    select: SelectOn
    """`validation`: stopped and chosen on the very part that is reported."""

    @property
    def over(self) -> str:
        """Return what the intervals are over: seeds (Student's t), or contexts (bootstrap) where there is one seed."""
        return "seeds" if len(self.chosen.seeds) > 1 else "contexts"


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All that a folder holds, in one file."""

    model: str
    digest: str
    data: dict[str, str]
    summaries: list[Summary]
    best: dict[str, str]
    """The folder of the best encoder of each split."""
    classifiers: list[Classified]
    trainings: list[Result]


def summarise(model: str, results: Sequence[Result], select: SelectOn = "inner") -> list[Summary]:
    """Return a summary of each split and loss, in the order of the results."""
    groups: dict[tuple[SplitBy, LossName], dict[float, list[Result]]] = {}
    for result in results:
        by_value = groups.setdefault((result.split, result.settings.loss.name), {})
        by_value.setdefault(result.settings.loss.chosen, []).append(result)
    return [_summary(model, by_value, select) for by_value in groups.values()]


def pool(deltas: Sequence[Delta]) -> Pooled:
    """Put seeds together by their differences with the sign, so that opposite ones cancel; absolute values come last.

    The interval of one seed stays as it is; that of several is Student's.
    """
    signed = _mean([delta.signed for delta in deltas])
    if signed is None:
        return Pooled(None, None)
    if len(deltas) == 1:
        return Pooled(abs(signed), signed, deltas[0].low, deltas[0].high)
    half = float(stats.t.ppf(0.975, len(deltas) - 1) * stats.sem([delta.signed for delta in deltas]))
    return Pooled(abs(signed), signed, *fold(signed - half, signed + half))


def read_beside(folders: Sequence[str], out: Path) -> dict[str, Results]:
    """Return the results of other folders, each once, by the folder.

    Raises:
        UsageError: a folder does not exist, or is the call's own.
        DataError: one holds no results.
    """
    found: dict[Path, tuple[str, Results]] = {}
    for folder in folders:
        place = Path(folder).resolve()
        if place == out.resolve():
            raise UsageError(
                f"--beside {folder!r} is this call's own --out, which is drawn anyhow. Leave it out.",
                code="options.conflict",
            )
        if not place.is_dir():
            raise UsageError(
                f"--beside {folder!r} is no folder. Give the --out of an earlier train-encoder.", code="file.missing"
            )
        found.setdefault(place, (folder, _read(folder)))
    return dict(found.values())


def told_apart(own: Results, beside: Mapping[str, Results]) -> list[Summary]:
    """Return the summaries of other results; a model of a name that is taken is told by its folder, too."""
    found, names = [], {own.model}
    for folder, other in beside.items():
        model = f"{other.model} ({folder})" if other.model in names else other.model
        names.add(model)
        found += [msgspec.structs.replace(summary, model=model) for summary in other.summaries]
    return found


def _read(folder: str) -> Results:
    try:
        return msgspec.json.decode((Path(folder) / RESULTS).read_bytes(), type=Results)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(
            f"{folder!r} holds no results of train-encoder: {error}. Give an --out of another call.",
            code="training.no-results",
            folder=folder,
        ) from None


def _summary(model: str, by_value: dict[float, list[Result]], select: SelectOn) -> Summary:
    tried = [_tried(value, results) for value, results in by_value.items()]
    best = max(tried, key=lambda one: rank(one.tuning))
    results = by_value[best.value]
    loss, names = results[0].settings.loss, results[0].after
    rows = [
        Row(name, pool([r.before[name] for r in results]), pool([r.after[name] for r in results])) for name in names
    ]
    categories = [row for row in rows if row.category != "overall"]
    mean = Row("mean", _average([row.before for row in categories]), _average([row.after for row in categories]))
    split = results[0].split
    return Summary(model, split, loss.name, loss.parameter, best, (*rows, mean), tuple(tried), select)


def _tried(value: float, results: Sequence[Result]) -> Tried:
    seeds, epochs = tuple(r.settings.seed for r in results), tuple(r.best for r in results)
    return Tried(value, _mean([result.tuning for result in results]), seeds, epochs)


def _average(parts: Sequence[Pooled]) -> Pooled:
    return Pooled(_mean([part.value for part in parts]), _mean([part.signed for part in parts]))


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if one is missing, since means over different seeds do not compare."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None
