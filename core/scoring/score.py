"""Score a run from the store, without a model or backend."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import polars as pl

from ..catalogue.certificates import calibrated, flat
from ..catalogue.instrument import EveryOption, Instrument
from ..catalogue.material import reworded
from ..catalogue.origins import origins
from ..catalogue.plugins import blamed
from ..catalogue.questions import judged_of, questions_with
from ..catalogue.refusal_stage import decided, last_measured
from ..catalogue.study import Catalogue, Study
from ..contracts import Chart, Estimate, Example, Metric, Options, Stage
from ..contracts.errors import DataError, UsageError
from ..contracts.estimates import Caveat
from ..contracts.places import Places
from ..contracts.words import counted
from ..engine.integrity.repeats import Tally
from ..engine.manifest import (
    IMPORTED,
    Manifest,
    as_made,
    handed_on,
    manifest_of,
    present_data,
)
from ..engine.observations import spill_stage, stack, unstack, with_parts
from ..engine.reading import READERS
from ..engine.spilled import Frames
from ..fitness import StageFitness
from ..store import RunProof, RunRow, Store, finish_proof, get_run
from ..store.names import run_name
from ..store.repair import damage_words
from ..store.urls import option_words
from .draws import one_draw
from .fitness import Looked, fitness_of, look_into
from .fixed import with_fixed
from .language import answers_in_english
from .reasoning import Reasoned
from .stored_scores import read_published
from .unproved import unproved, unproved_words
from .whole_study import WholeStudy, whole_study
from .worded import described, worded

NAMED = ("key", "trial")
"""Columns that name a row and its exchange; examples need them."""
LOG = logging.getLogger(__name__)
BYTES = 400
"""Of a row of observations and of what a measure makes of it, as measured."""


class Scores(msgspec.Struct, frozen=True, dict=True):
    """The results computed from a run's answers."""

    run: RunRow
    manifest: Manifest
    """Without the paths of this machine, as it is handed on."""
    stages: tuple[Stage, ...]
    observations: Mapping[str, Any]
    """A polars frame by stage; those of a large run are read from files, see `lazy`."""
    estimates: dict[str, list[Estimate]]
    """By metric."""
    headline: tuple[Estimate, ...]
    conclusions: dict[str, str]
    methods: tuple[str, ...]
    metrics: dict[str, tuple[Metric, Options]] = {}
    """The instrument and its options; empty if nothing was measured."""
    options: EveryOption = EveryOption({}, {})
    """Every option of the probe and of each metric, defaults included."""
    rereads: frozenset[str] = frozenset()
    """Options of the probe that only change how answers are read."""
    damage: str = ""
    """What is known to be damaged of the run's answers and could not be repaired; empty if nothing is."""
    unproved: str = ""
    """Why these numbers are not those of the run's head: what is first found to be damaged; empty if they are."""
    left_out: dict[str, int] = {}
    """By stage, rows that are no draws of their own (`one_draw`), and are not among the observations."""
    beside: tuple[str, ...] = ()
    """What other analyses of the run say, such as its multiverse."""
    reasoned: Reasoned | None = None
    """The reasoning in the subject's answers; only where runs are compared."""
    local: Study | None = None
    """The study with the paths of this machine."""
    looked: Looked = {}
    """By stage, answers whose texts were looked at for `fitness`."""
    english: bool | None = True
    """Whether rules could recognise refusals (`answers_in_english`); None: it is not known."""
    by_likelihood: str = ""
    """The assignment that has the study ask by likelihood; empty: it cannot, or did so."""
    find_whole: Callable[[], WholeStudy | None] | None = None
    """Return the whole study of a run of a part; None if nothing was measured."""

    @property
    def is_imported(self) -> bool:
        """Return whether the answers were collected elsewhere: when and how they were asked is not known here."""
        return self.manifest.mode == IMPORTED or self.run.state == "imported"

    @property
    def made(self) -> Study:
        """Return the study from which its instrument is made."""
        return self.local or self.manifest.study

    @cached_property
    def judged(self) -> dict[str, list[Estimate]]:
        """Return the estimates without measures that answer the study's questions only where it is asked otherwise."""
        return judged_of(self.manifest.study.questions, flat(self.options), self.estimates)

    @cached_property
    def charts(self) -> tuple[Chart, ...]:
        """Draw the figures of every metric, at their first use: a verdict needs none."""
        drawn = (chart for name, (m, _) in self.metrics.items() for chart in m.figures(self.judged[name]))
        charts = [worded(chart, self.manifest.study.words) for chart in drawn]
        return tuple(
            msgspec.structs.replace(chart, title=unproved_words(chart.title)) if self.unproved else chart
            for chart in charts
        )

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Pick the exchanges behind the numbers, at their first use."""
        chosen = (e for m, options in self.metrics.values() for e in self._examples(m, options))
        return tuple(worded(e, self.manifest.study.words) for e in chosen)

    def _examples(self, metric: Metric, options: Options) -> Sequence[Example]:
        if type(metric).examples is Metric.examples:
            return ()
        return metric.examples(self.seen_by(metric, options, NAMED), options)

    @property
    def last(self) -> pl.DataFrame:
        """Return the observations of the last stage."""
        frame: pl.DataFrame = self.observations[last_measured(self.stages).name]
        return frame

    @cached_property
    def asked(self) -> pl.DataFrame:
        """Return the factors of the first stage's trials that were asked, at their first use."""
        first = self.stages[0]
        return self.lazy(first.name).select(first.factors).collect(engine="streaming")

    @cached_property
    def whole(self) -> WholeStudy | None:
        """Return the whole study, at its first use; None where the run is of all of it, or nothing was measured."""
        return self.find_whole() if self.find_whole is not None else None

    @cached_property
    def fitness(self) -> tuple[StageFitness, ...]:
        """Return whether the models could do the task of each stage, recomputed from the answers."""
        return fitness_of(self.stages, self.frames, self.looked, self.manifest.design)

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Hold what was worked out of these scores and is asked for again: both screen and report give the answer."""
        return {}

    @cached_property
    def stacked(self) -> pl.DataFrame:
        """Return the observations of all stages in one frame, with a column `stage`."""
        return stack(self.observations)

    @property
    def frame(self) -> pl.DataFrame:
        """Return the observations; those of several stages are stacked."""
        return self.last if len(self.observations) == 1 else self.stacked

    @property
    def frames(self) -> Frames:
        """Return the observations as they are kept: in memory or, of a large run, in files."""
        kept = self.observations
        return kept if isinstance(kept, Frames) else Frames(kept)

    def lazy(self, stage: str) -> pl.LazyFrame:
        """Return a query of a stage's observations, which reads the columns that it needs, and no others."""
        return self.frames.lazy(stage)

    def height(self, stage: str) -> int:
        """Return the number of a stage's observations."""
        return self.frames.height(stage)

    def recorded(self, stage: str) -> int:
        """Return the number of recorded trials of a stage."""
        return self.height(stage) + self.left_out.get(stage, 0)

    def seen_by(self, metric: Metric, options: Options | None = None, besides: Collection[str] = ()) -> pl.DataFrame:
        """Return the observations that a metric is computed from.

        Of a large run, a metric that is `lean` receives the columns of its options, and those `besides`, only.
        """
        stage, frames = last_measured(self.stages).name, self.frames
        if not metric.lean or metric.every_stage or not frames.spilled(stage):
            return self.stacked if metric.every_stage else self.last
        read = {*metric.columns(options), "status", *besides}
        texts = pl.selectors.by_dtype(pl.String) - pl.selectors.by_name(*NAMED, require_all=False)
        chosen = (name for name in frames.schema(stage) if name in read)
        return frames.lazy(stage).select(chosen).with_columns(texts.cast(pl.Categorical)).collect(engine="streaming")

    @property
    def confused(self) -> tuple[str, ...]:
        """Return what the study cannot tell from bias, by its certificate."""
        known = self.manifest.calibration
        return known.confused if known is not None and all(fitness.fit for fitness in self.fitness) else ()

    @property
    def answered(self) -> bool:
        """Return whether any answer could be read, of each stage that asked at all."""
        asked = [stage for stage in self.observations if self.height(stage)]
        read = (self.lazy(stage).select((pl.col("status") == "ok").any()) for stage in asked)
        return bool(asked) and all(found.collect(engine="streaming").item() for found in read)


def score(
    catalogue: Catalogue,
    store: Store,
    name: str,
    assignments: Mapping[str, Any] | None = None,
    *,
    unrecorded: bool = False,
) -> Scores:
    """Score a run from the store alone.

    `METRIC.option` in `assignments` overrides how it is measured; so may an option of the probe that only changes how
    answers are read (`Options.rereads`).
    `unrecorded`: accept a run without recorded trials, which has no estimates. Of a store that is opened as
    `unproved`, a run that is not as it was stored is scored, too: every estimate says so, and there is no head.

    Raises:
        UsageError: an assignment is not to a metric of the study; other options cannot change after a run.
        UnknownNameError: there is no such run, or its probe or metrics are not installed.
        DataError: the run recorded nothing yet, or is not as it was stored.
    """
    scores, instrument = opened(catalogue, store, name, assignments)
    if not _recorded(scores, instrument):
        if unrecorded:
            return msgspec.structs.replace(scores, manifest=handed_on(scores.manifest), local=scores.manifest.study)
        raise _unrecorded(scores, store)
    return measure_scores(catalogue, scores, instrument)


def opened(
    catalogue: Catalogue, store: Store, name: str, assignments: Mapping[str, Any] | None = None
) -> tuple[Scores, Instrument]:
    """Return a run with its observations and no estimates, and what it was asked and is measured with.

    Raises:
        UsageError, UnknownNameError, DataError: as of `score`.
    """
    run = get_run(store, name)
    manifest = manifest_of(run)
    manifest = msgspec.structs.replace(manifest, study=as_made(catalogue, manifest))
    rereads = catalogue.plugins.load("probe", manifest.study.probe).options.rereads
    manifest = _remeasured(manifest, assignments or {}, rereads)
    instrument = catalogue.instrument(manifest.study, manifest.design)
    stages = tuple(instrument.stages())
    if manifest.is_published:
        frames, manifest, problems = read_published(store, run, manifest, stages[-1])
        return Scores(run, manifest, stages[-1:], frames, {}, (), {}, (), **problems), instrument
    tallies = {stage.name: Tally() for stage in stages}
    reasoning = instrument.needs_reasoning
    proof = RunProof(store, run)
    # In the order of the head: the digests of a stage that is read before its turn would wait in memory.
    read = {
        stage.name: spill_stage(
            store, run, stage, tallies[stage.name], reasoning=reasoning, proof=proof, design=instrument.design
        )
        for stage in sorted(stages, key=lambda stage: stage.name)
    }
    finish_proof(store, run.id, proof)
    every_draw = Frames({stage.name: read[stage.name] for stage in stages} | decided(Frames(read), stages))
    repeated = [name for name, found in manifest.integrity.items() if found.repeated]
    observations = Frames(one_draw(every_draw, stages, repeated)) if repeated else every_draw
    left_out = {n: lost for n in observations if (lost := every_draw.height(n) - observations.height(n))}
    counts = {name: found for name, tally in tallies.items() if (found := tally.count()) is not None}
    manifest = msgspec.structs.replace(manifest, repeats=counts, readers=dict(READERS), head=proof.head)
    flaws: dict[str, Any] = {"damage": damage_words(store, run.id), "unproved": proof.problem, "left_out": left_out}
    flaws["looked"] = look_into(store, run, stages, observations)
    flaws["english"] = None if proof.problem else answers_in_english(store, run, stages, observations)
    return Scores(run, manifest, stages, observations, {}, (), {}, (), **flaws), instrument


def _recorded(scores: Scores, instrument: Instrument) -> bool:
    """Return whether there is anything to measure."""
    every = any(metric.every_stage for metric, _ in instrument.metrics.values())
    read = scores.stages if every else (last_measured(scores.stages),)
    return any(scores.height(stage.name) for stage in read)


def _unrecorded(scores: Scores, store: Store) -> DataError:
    run, manifest = scores.run, scores.manifest
    if manifest.stages and not any(record.planned for record in manifest.stages.values()):
        return DataError(
            f"run {run.name} asked nothing: its design was empty. `prejudge plan {manifest.study.name}` with the "
            "same options says what is missing.",
            code="study.empty",
        )
    asked = [
        f"{scores.recorded(name):,} of {counted(record.planned, 'question')} of the stage {name!r}"
        for name, record in manifest.stages.items()
    ]
    return DataError(
        f"run {run.name} has nothing to measure yet: {', '.join(asked) or 'nothing'} were asked, and its numbers are "
        f"made from the answers of the stage {last_measured(scores.stages).name!r}. What was answered is kept. "
        f"Finish it: prejudge resume {run.name}{option_words(store.url)}",
        code="run.incomplete",
    )


def _remeasured(manifest: Manifest, assignments: Mapping[str, Any], rereads: frozenset[str] = frozenset()) -> Manifest:
    """Return the manifest with other options of its metrics, and those of its probe that only change the reading."""
    metrics = {name: dict(options) for name, options in manifest.study.metrics.items()}
    probe = dict(manifest.study.options)
    for name, value in assignments.items():
        metric, _, option = name.partition(".")
        if name in rereads:
            probe[name] = value
        elif metric in metrics and option:
            metrics[metric][option] = value
        else:
            known = ", ".join([*sorted(rereads), *(f"{name}.OPTION" for name in metrics)])
            raise UsageError(
                f"{name!r} cannot be set when a run is scored again. These can: {known}.", code="score.fixed-option"
            )
    study = msgspec.structs.replace(manifest.study, options=probe, metrics=metrics)
    return msgspec.structs.replace(manifest, study=study, remeasured=manifest.remeasured | dict(assignments))


def measure_frame(
    catalogue: Catalogue, manifest: Manifest, observations: pl.DataFrame, assignments: Mapping[str, Any] | None = None
) -> Scores:
    """Measure the observations of a run; without the store, examples have no exchanges, and no head follows.

    Raises:
        UsageError: an assignment is not to a metric of the study.
    """
    headless = msgspec.structs.replace(manifest, study=as_made(catalogue, manifest), head="")
    manifest = _remeasured(headless, assignments or {})
    instrument = catalogue.instrument(manifest.study, manifest.design)
    stages = tuple(instrument.stages())
    frames = unstack(observations, stages)
    frames = {name: with_parts(frame, instrument.design) for name, frame in frames.items()}
    kept = tuple(stage for stage in stages if stage.name in frames)
    # Of published scores no model was asked: there is nothing to resume.
    state = "left" if manifest.identities else "imported"
    run = RunRow(0, run_name(manifest.run), manifest.study.name, state, "", 0.0, None)
    return measure_scores(catalogue, Scores(run, manifest, kept, frames, {}, (), {}, ()), instrument)


def measure_scores(catalogue: Catalogue, scores: Scores, instrument: Instrument) -> Scores:
    """Return scores with every number that the metrics of their study compute."""
    estimates, limits = {}, [Caveat.SELECTED] if scores.manifest.renewed else []
    words, asked = scores.manifest.study.words, instrument.every_option
    columns = frozenset(name for stage in scores.observations for name in scores.frames.schema(stage))
    sentinels = [record.batch.sentinel for record in scores.manifest.stages.values() if record.batch is not None]
    limits += [Caveat.BATCH_DIFFERS] if any(found is not None and found.differs for found in sentinels) else []
    limits += [Caveat.ENDED_EARLY] if scores.manifest.ending is not None else []
    limits += [Caveat.ONE_DRAW] if any(one.repeated for one in scores.manifest.integrity.values()) else []
    questions = questions_with(scores.manifest.study.questions, flat(asked))
    for name, (metric, options) in instrument.metrics.items():
        with blamed(catalogue.plugins.offers["metric"][name].plugin, f"metric {name!r}"):
            found = [described(e, metric, options, questions, words) for e in _computed(scores, name, metric, options)]
            found = with_fixed((e for e in found if not _by_unrecorded(e, scores.manifest)), instrument.design, columns)
            found = [e.replace(caveats=(*e.caveats, *limits)) for e in found] if limits else found
            estimates[name] = list(map(unproved, found)) if scores.unproved else found
    data, study = present_data(scores.manifest, instrument.files()), scores.manifest.study
    manifest = msgspec.structs.replace(scores.manifest, data=data, measured=origins(catalogue, study, models=False))
    record = msgspec.to_builtins([manifest, asked])
    places = Places.of(record)
    named, every = msgspec.convert(places.record(record), tuple[Manifest, EveryOption])
    # A certificate is of asking a model; of published scores nobody was asked here.
    known = calibrated(catalogue, study, asked, data) if manifest.identities else None
    if known is not None and words:
        known = msgspec.structs.replace(known, confused=tuple(reworded(text, words) for text in known.confused))
    named = msgspec.structs.replace(named, calibration=known)
    judged = judged_of(study.questions, flat(asked), estimates)
    measured = msgspec.structs.replace(
        scores,
        manifest=named,
        local=study,
        estimates=estimates,
        headline=tuple(e for name, (m, _) in instrument.metrics.items() for e in m.headline(judged[name])),
        conclusions=_conclusions(scores, instrument, judged, places),
        methods=tuple(places.text(reworded(text, study.words)) for text in instrument.methods()),
        metrics=instrument.metrics,
        options=every,
        rereads=instrument.options.rereads,
        by_likelihood=instrument.by_likelihood,
    )
    return msgspec.structs.replace(measured, find_whole=partial(whole_study, catalogue, measured))


def _conclusions(
    scores: Scores, instrument: Instrument, estimates: Mapping[str, list[Estimate]], places: Places
) -> dict[str, str]:
    words = scores.manifest.study.words
    sentences = {name: reworded(m.conclude(estimates[name]), words) for name, (m, _) in instrument.metrics.items()}
    texts = {name: places.text(text) for name, text in sentences.items()}
    return {name: unproved_words(text) for name, text in texts.items()} if scores.unproved else texts


def _by_unrecorded(estimate: Estimate, manifest: Manifest) -> bool:
    """Return whether an estimate is of a level that nobody recorded, such as of an unknown order of the options."""
    return any(name in estimate.group for name in manifest.unrecorded)


def _computed(scores: Scores, name: str, metric: Metric, options: Options) -> Sequence[Estimate]:
    if not metric.lean and any(scores.frames.spilled(stage) for stage in scores.observations):
        rows = sum(scores.height(stage) for stage in scores.observations)
        LOG.warning(
            "The metric %s holds all observations in memory at once: %s rows, about %.0f GiB. A metric that says "
            "`lean = True` receives the columns that it needs.",
            name,
            f"{rows:,}",
            rows * BYTES / 2**30,
        )
    return metric.compute(scores.seen_by(metric, options), options)
