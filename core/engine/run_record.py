"""`RunRecord`: what the store keeps of a run besides its trials, from its first request to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from ..catalogue.instrument import Instrument
from ..catalogue.needs import ensure_asked
from ..catalogue.origins import Origin
from ..catalogue.plugins import blamed
from ..catalogue.prices import Prices
from ..catalogue.study import Study
from ..contracts.adapter import ModelAdapter, abilities_of
from ..contracts.canonical import encode
from ..contracts.probe import count_trials
from ..contracts.words import counted
from ..store import Store, renewed_answers, trial_counts
from ..store.earlier_answers import EarlierAnswers, earlier_answers
from .ending import INCOMPLETE, Ending
from .integrity.records import ALIKE
from .integrity.records import add_up as add_findings
from .integrity.replies import Inspector
from .manifest import (
    Manifest,
    StageRecord,
    add_up,
    describe_machine,
    digest_data,
    drawn_alike,
    find_earlier,
    new_name,
    set_settings,
    with_removed,
    with_versions,
)
from .reading import READERS
from .run_options import RunOptions


class Parts(NamedTuple):
    """The parts of a run."""

    study: Study
    instrument: Instrument
    adapters: Mapping[str, ModelAdapter]
    """By model."""
    owner: str
    """The plugin of the probe."""
    prices: Mapping[str, Prices]
    """By model."""
    origins: dict[str, Origin]
    """Packages of third-party parts."""
    packages: Mapping[str, Mapping[str, str]]
    """By model: versions of the packages of its adapter."""

    def adapter(self, role: str) -> ModelAdapter:
        """Return the adapter of a role's model."""
        return self.adapters[self.study.roles[role]]


class RunRecord:
    """The record of a run; a resumed one adds to what was recorded before."""

    def __init__(self, parts: Parts, store: Store, options: RunOptions) -> None:
        self._parts, self._store, self._options = parts, store, options
        self.study, self.instrument = parts.study, parts.instrument
        self.name = (
            options.name or options.new_name or new_name(self.study.name, self.study.roles.get("subject", "model"))
        )
        self.before = find_earlier(store, options.name, self.study)
        self.recorded = self.before.manifest.stages if self.before is not None else {}
        """By stage, from before the run was resumed."""
        self.stages: dict[str, StageRecord] = {}
        self.planned: dict[str, int] = {}
        self.notes: Counter[str] = Counter()
        """What a reader needs to know of the material: the stages' own, and of how many images a model's."""
        self.maker = ""
        """See `Manifest`."""
        self.asked_models: set[str] = set()
        self._integrity = {} if self.before is None else dict(self.before.manifest.integrity)

    def plan(self) -> None:
        """Count the trials of the first stage. That reads the data, so errors in it are found before the run begins.

        Raises:
            UsageError: the design is empty, or the data cannot be used.
        """
        stages, main = self.instrument.stages(), self.instrument.main_stage
        with blamed(self._parts.owner, f"probe {self.study.probe!r}"):
            countable = [stage for stage in stages if stage.rules.auxiliary or stage is main]
            self.planned = {stage.name: count_trials(stage, {}) for stage in countable}
            self.notes.update(dict.fromkeys(self.study.notes, 0))
            self.notes.update(dict.fromkeys((note for stage in stages for note in stage.notes()), 0))
            ensure_asked(self.study, main, self.planned[main.name])

    def begin(self) -> int:
        """Record that the run begins, and return its number in the store.

        Raises:
            UsageError: another process has changed the run to resume.
        """
        self._manifest = self._describe()
        self.stages = self.recorded | {
            name: add_up(self.recorded, name, StageRecord(planned)) for name, planned in self.planned.items()
        }
        begun = encode(msgspec.structs.replace(self._manifest, stages=self.stages, timing=self._options.timing))
        earlier = None if self.before is None else self.before.row.manifest
        return self._store.begin_run(self.name, self.study.name, begun, earlier)

    def add_stage(self, name: str, stage: StageRecord, model: str) -> None:
        """Record what a stage asked of its model."""
        self.stages[name] = add_up(self.recorded, name, stage)
        if any(stage.counts[count] for count in ("asked", "failed", "retried", "canary")):
            self.asked_models.add(model)

    def add_findings(self, stage: str, role: str, inspector: Inspector, *, cached: bool) -> None:
        """Record what was found out about the endpoint of a stage; `cached`: it has stored answers."""
        integrity = inspector.result()
        if integrity.canary is not None and integrity.canary.verdict == "alike":
            repeated = ALIKE if self._options.accept_repeats else ""
        else:
            identity = self._parts.adapter(role).identity
            repeated = drawn_alike(self._store, self.name, identity) if cached else ""
        integrity = msgspec.structs.replace(integrity, repeated=repeated)
        self._integrity[stage] = add_findings(self._integrity.get(stage), integrity)

    def ensure_complete(self, run_id: int) -> None:
        """Refuse to call a run finished of which the store has fewer trials, or more, than were planned.

        Raises:
            HaltedError: it has.
        """
        recorded = trial_counts(self._store, run_id)
        for name, record in self.stages.items():
            if (count := recorded.get(name, 0)) != record.planned:
                planned = counted(record.planned, "planned trial")
                raise INCOMPLETE.error(recorded=count, planned=planned, stage=name, probe=self.study.probe)

    def end(self, run_id: int, state: str) -> None:
        """Record the end of the run; if nothing was asked, its earlier record stays unchanged."""
        before, manifest = self.before, self._manifest
        manifest = msgspec.structs.replace(
            manifest,
            stages=self.stages,
            integrity=self._integrity,
            notes=(*(_note(*item) for item in self.notes.items()), *_estimated(self.stages)),
            renewed=renewed_answers(self._store, run_id),
            earlier=self._earlier_answers(run_id),
            ending=self._ending,
            **describe_machine(self._packages(self.asked_models)),
        )
        if before is not None:
            packages = with_versions(before.manifest.packages, manifest.packages)
            manifest = msgspec.structs.replace(manifest, packages=packages)
        encoded = encode(manifest)
        if self.asked_models or before is None:
            self._store.end_run(run_id, state, encoded)
            return
        if before.done and state == "finished":
            encoded = before.row.own.encode()
        self._store.end_run(run_id, state, encoded, before.row.finished)

    def _packages(self, models: Iterable[str]) -> dict[str, str]:
        return {name: number for model in models for name, number in self._parts.packages[model].items()}

    def _earlier_answers(self, run_id: int) -> EarlierAnswers | None:
        counts = [record.counts for record in self.stages.values()]
        if self.before is None and not any(count.get("cached") for count in counts):
            return None  # nothing was taken from the store: no need to search it
        now = earlier_answers(self._store, run_id)
        return now if self.before is None else with_removed(self.before.manifest.earlier, now)

    @property
    def _ending(self) -> Ending | None:
        return None if self._options.decider is None else self._options.decider.ending

    def _describe(self) -> Manifest:
        study, options, adapters = self.study, self._options, self._parts.adapters
        settings = {role: set_settings(adapters[model]) for role, model in study.roles.items()}
        return Manifest(
            run=self.name,
            study=study,
            identities={role: adapters[model].identity for role, model in study.roles.items()},
            described={role: dict(facts) for role, m in study.roles.items() if (facts := adapters[m].describe())},
            settings={role: values for role, values in settings.items() if values},
            abilities={role: abilities_of(adapters[model]).names for role, model in study.roles.items()},
            data=digest_data(msgspec.structs.asdict(self.instrument.options)),
            options=self.instrument.every_option,
            design=self.instrument.design,
            readers=dict(READERS),
            origins=self._parts.origins,
            mode=options.mode,
            refresh=options.refresh,
            batch=options.batch,
            ending=self._ending,
            command=options.command,
            maker=self.maker,
            **describe_machine(self._packages(self._parts.packages)),
        )


def _estimated(stages: Mapping[str, StageRecord]) -> tuple[str, ...]:
    """Return a note if the cost of answers is an estimate."""
    count = sum(int(record.counts.get("estimated") or 0) for record in stages.values())
    return (f"{counted(count, 'answer')} without a credible count of tokens, charged as estimated",) if count else ()


def _note(text: str, images: int) -> str:
    return f"{counted(images, 'image')}: {text}" if images else text
