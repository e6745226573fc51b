"""The result of every universe whose answers are in the store, what agrees, and which choice moves it most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np

from ...catalogue.study import Catalogue, Study
from ...contracts.errors import DataError, UnknownNameError, UnsupportedOperationError
from ...contracts.estimates import Estimate, Verdict
from ...engine.manifest import manifest_of
from ...engine.plan import plan
from ...scoring.score import Scores, score
from ...store import RunRow, Store, list_runs, unfinished_runs
from .choices import Universe


class Result(msgspec.Struct, frozen=True):
    """The estimate of a universe, and the run it is of."""

    universe: Universe
    estimate: Estimate
    run: str

    @property
    def sign(self) -> int:
        """Return on which side of neutral the value is: -1, 0 or 1."""
        e = self.estimate
        return 0 if e.value is None or e.neutral is None else int(np.sign(e.value - e.neutral))

    @property
    def verdict(self) -> str:
        """Return what is said of it: above, below, or no difference shown."""
        return str(self.estimate.verdict) if self.estimate.shown else str(Verdict.OPEN)


class Missing(msgspec.Struct, frozen=True):
    """What no run of the store has asked."""

    study: Study
    chosen: Mapping[str, Any]
    universes: int
    requests: int
    """Without a stored answer; of the first stage."""
    cost: float | None
    """Of these, in US dollars by the registry's prices; None where no price is known."""
    later: tuple[str, ...]
    """Stages whose requests follow from these answers."""
    run: str | None
    """An unfinished run that asks this, which can be resumed."""


class Unable(msgspec.Struct, frozen=True):
    """What a model cannot be asked."""

    chosen: Mapping[str, Any]
    universes: int
    needs: str
    """The operation that the model lacks."""


class Moved(msgspec.Struct, frozen=True):
    """What a choice does, all else as it is: of pairs of universes that differ in it alone."""

    choice: str
    pairs: int
    verdicts: int
    """Pairs whose verdicts differ."""
    signs: int
    change: float | None
    """Mean absolute difference of the values; None where they have several units."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A multiverse; the first result is that of the study's own choices."""

    study: Study
    results: tuple[Result, ...]
    missing: tuple[Missing, ...]
    unable: tuple[Unable, ...]
    every: int
    """Number of universes."""

    @property
    def own(self) -> Result:
        """Return the result of the study's own choices, or else of those next to them."""
        return self.results[0]

    @property
    def same_sign(self) -> float:
        """Return the share of results on the same side of neutral as the first."""
        return float(np.mean([one.sign == self.own.sign for one in self.results]))

    @property
    def same_verdict(self) -> float:
        """Return the share of results with the verdict of the first."""
        return float(np.mean([one.verdict == self.own.verdict for one in self.results]))

    @property
    def moved(self) -> list[Moved]:
        """Return what each choice does, that which moves the result most first."""
        found = [_moved(choice, self.results) for choice in self.own.universe.chosen]
        return sorted(found, key=lambda one: (-one.verdicts / max(one.pairs, 1), -(one.change or 0.0)))


def _moved(choice: str, results: tuple[Result, ...]) -> Moved:
    by: dict[str, list[Result]] = {}
    for one in results:
        others = {key: value for key, value in one.universe.chosen.items() if key != choice}
        by.setdefault(repr(others), []).append(one)
    pairs = [pair for part in by.values() for pair in combinations(part, 2)]
    units = {one.estimate.unit for one in results}
    changes = [
        abs(one.estimate.value - other.estimate.value)
        for one, other in pairs
        if one.estimate.value is not None and other.estimate.value is not None
    ]
    return Moved(
        choice,
        len(pairs),
        sum(one.verdict != other.verdict for one, other in pairs),
        sum(one.sign != other.sign for one, other in pairs),
        float(np.mean(changes)) if changes and len(units) == 1 else None,
    )


def multiverse(catalogue: Catalogue, store: Store, every: Sequence[Universe]) -> Found:
    """Score every universe that runs of the store have the answers of, and plan the others.

    Raises:
        UsageError: there is no such estimate, or the model cannot answer the study's own choices.
        DataError: no run has the answers of any universe.
    """
    runs = _runs(catalogue, store, every)
    results, scored = [], dict[str, Scores]()
    for universe in every:
        if (run := runs.get(universe.asked)) is None:
            continue
        how = f"{run.name} {universe.scoring!r}"
        if how not in scored:
            scored[how] = score(catalogue, store, run.name, universe.scoring)
        results.append(Result(universe, _estimate(scored[how], universe), run.name))
    planned, unable = _unasked(catalogue, store, every, runs)
    if not results:
        asked = "; ".join(f"{_told(one.chosen)}: {one.requests:,} requests" for one in planned[:3])
        raise DataError(
            f"no run in the store has the answers of any of the {len(every):,} universes. Run the study first. To ask "
            f"are {asked}.",
            code="multiverse.nothing",
        )
    return Found(study=every[0].study, results=tuple(results), missing=planned, unable=unable, every=len(every))


def unasked(catalogue: Catalogue, store: Store, every: Sequence[Universe]) -> tuple[Missing, ...]:
    """Return what no finished run of the store has asked and the model can answer, planned; the study's own first.

    Raises:
        UsageError: the model cannot answer the study's own choices.
    """
    return _unasked(catalogue, store, every, _runs(catalogue, store, every))[0]


def _unasked(
    catalogue: Catalogue, store: Store, every: Sequence[Universe], runs: Mapping[str, RunRow]
) -> tuple[tuple[Missing, ...], tuple[Unable, ...]]:
    missing: dict[str, list[Universe]] = {}
    for universe in every:
        if universe.asked not in runs:
            missing.setdefault(universe.asked, []).append(universe)
    begun = unfinished_runs(store) if missing else []
    planned, unable = [], []
    for asked, parts in missing.items():
        try:
            planned.append(_planned(catalogue, store, parts, begun))
        except UnsupportedOperationError as error:
            if asked == every[0].asked:
                raise
            unable.append(Unable(parts[0].chosen, len(parts), str(error.fields.get("needs"))))
    return tuple(planned), tuple(unable)


def _runs(catalogue: Catalogue, store: Store, every: Sequence[Universe]) -> dict[str, RunRow]:
    """Return the latest finished run that has asked what a universe asks, by that."""
    rereads = catalogue.plugins.load("probe", every[0].study.probe).options.rereads

    def recorded(options: Mapping[str, Any]) -> bytes:
        return msgspec.json.encode({k: v for k, v in options.items() if k not in rereads}, order="sorted")

    wanted: dict[str, tuple[bytes, dict[str, str]]] = {}
    for universe in every:
        if universe.asked not in wanted:
            options = catalogue.instrument(universe.study).every_option.probe
            wanted[universe.asked] = (recorded(options), universe.study.roles)
    found: dict[str, RunRow] = {}
    for row in list_runs(store):
        if row.study != every[0].study.name or row.state != "finished":
            continue
        manifest = manifest_of(row)
        if manifest.ending is not None or manifest.study.limit != every[0].study.limit:
            continue
        own = recorded(manifest.options.probe)
        found |= {key: row for key, of in wanted.items() if of == (own, manifest.study.roles)}
    return found


def _estimate(scores: Scores, universe: Universe) -> Estimate:
    """Return the estimate that answers the question.

    Raises:
        UnknownNameError: there is no such measure, or no such group of it.
    """
    every = [e for estimates in scores.estimates.values() for e in estimates]
    named = [e for e in every if e.metric == universe.measure]
    if not named:
        known = dict.fromkeys(e.metric for e in every)
        raise UnknownNameError("measure", universe.measure, known, code="multiverse.measure")
    wanted = {name: str(level) for name, level in universe.group.items()}
    found = [e for e in named if {name: str(level) for name, level in e.group.items()} == wanted]
    if not found:
        groups = dict.fromkeys(_told(e.group) or "the whole study" for e in named)
        raise UnknownNameError("group", _told(universe.group) or "the whole study", groups, code="multiverse.group")
    return found[0]


def _planned(catalogue: Catalogue, store: Store, parts: list[Universe], begun: Sequence[RunRow]) -> Missing:
    study = parts[0].study
    stages = plan(catalogue, study, store)
    costs = [stage.cost for stage in stages]
    return Missing(
        study,
        parts[0].chosen,
        len(parts),
        requests=sum(stage.requests for stage in stages),
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
        later=tuple(name for stage in stages for name, _ in stage.later),
        run=next((row.name for row in begun if row.study == study.name and _continues(row, study)), None),
    )


def _continues(row: RunRow, study: Study) -> bool:
    manifest = manifest_of(row)
    return manifest.study == study and manifest.ending is None and manifest.batch is None and manifest.mode == "use"


def _told(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in chosen.items())
