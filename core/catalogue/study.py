"""`Study`: what is asked, of whom, and how it is measured; resolved from the catalogue and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from ..contracts import Metric, Options, Probe, Stage
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import PluginError, UsageError
from ..contracts.options import build_options
from .plugins import Plugins
from .registry import ModelEntry, PluginEntry, Published, Registry, StudyEntry, load_registry
from .studyfile import is_study_file, read_study_file

SUBJECT = "subject"
STAGE = "stage"
"""The column that says which stage an observation is of, where several are stacked."""
ALWAYS = ("status", "reason", "key")
"""The columns that every observation has besides factors and outcomes."""


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """A study with every choice made. It stands in the run's manifest, so that a run can be scored again."""

    name: str
    probe: str
    options: dict[str, Any]
    """What was set; the rest are the probe's defaults."""
    metrics: dict[str, dict[str, Any]]
    roles: dict[str, str]
    """Model by role."""
    title: str = ""
    summary: str = ""
    source: str = ""
    published: tuple[Published, ...] = ()
    deviations: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


class Catalogue:
    """The registry and the plugins, together: names to things."""

    def __init__(self, registry: Registry, plugins: Plugins) -> None:
        self.registry, self.plugins = registry, plugins
        self._last: tuple[object, Instrument] | None = None

    @classmethod
    def load(cls, registry: str | None = None) -> Catalogue:
        """Return the catalogue with the user's registry and the installed plugins."""
        entries = load_registry(registry)
        plugins = Plugins(entries)
        # A model may be named ADAPTER:MODEL, whoever brought the adapter.
        adapters = {
            name: entries.adapters.get(name) or PluginEntry(str(offer.plugged.target), offer.plugged.summary)
            for name, offer in plugins.offers["adapter"].items()
        }
        studies = plugins.studies | entries.studies
        return cls(msgspec.structs.replace(entries, adapters=adapters, studies=studies), plugins)

    def study(self, name: str, models: Mapping[str, str], assignments: Mapping[str, Any]) -> Study:
        """Return a study with a model for each role, and options set: `per_cell` or `METRIC.resamples`.

        `name` is a study of the catalogue, or a study file (`my-study.toml`).

        Raises:
            DataError: the study file cannot be used.
            UnknownNameError: nobody registered the study, a model, or an option.
        """
        name = self.adopt(name)
        entry = self._seeded(self.registry.study(name))
        options, metrics = _assign(entry, assignments)
        roles = entry.roles | dict(models)
        for model in roles.values():
            self.registry.model(model)
        return Study(
            name=name,
            probe=entry.probe,
            options=options,
            metrics=metrics,
            roles=roles,
            title=entry.title or name,
            summary=entry.summary,
            source=entry.source,
            published=entry.published,
            deviations=entry.deviations,
            limits=entry.limits,
        )

    def adopt(self, name: str) -> str:
        """Take the study of a study file into the registry, and return its name; any other name stays as it is.

        Raises:
            DataError: the study file cannot be used.
            UnknownNameError: it has an unknown key, or names a probe or metric that nobody registered.
        """
        if not is_study_file(name):
            return name
        own, entry = read_study_file(name)
        self.registry.studies[own] = entry
        return own

    def _seeded(self, entry: StudyEntry) -> StudyEntry:
        """Give the study's seed to the probe and to the metrics that have an option for one, where none is set."""
        if (seed := entry.seed) is None:
            return entry

        def filled(kind: str, name: str, values: dict[str, Any]) -> dict[str, Any]:
            has = "seed" in self.plugins.load(kind, name).options.__struct_fields__
            return {"seed": seed, **values} if has else values

        return msgspec.structs.replace(
            entry,
            options=filled("probe", entry.probe, entry.options),
            metrics={name: filled("metric", name, values) for name, values in entry.metrics.items()},
        )

    def instrument(self, study: Study) -> Instrument:
        """Load the study's probe and metrics, and check that they fit together.

        The same study again is the same instrument, so that a run is scored with the stages that it was asked with.
        """
        named = [("probe", study.probe), *(("metric", name) for name in study.metrics)]
        asked = (msgspec.json.encode(study), [self.plugins.load(kind, name) for kind, name in named])
        if self._last is None or self._last[0] != asked:
            self._last = (asked, self._instrument(study))
        return self._last[1]

    def _instrument(self, study: Study) -> Instrument:
        probe = self._make(Probe, "probe", study.probe)
        instrument = Instrument(
            probe=probe,
            options=build_options(study.name, probe.options, study.options),
            roles=frozenset(study.roles),
            metrics={
                name: (metric := self._make(Metric, "metric", name), build_options(name, metric.options, values))
                for name, values in study.metrics.items()
            },
        )
        instrument.check()
        return instrument

    def adapter(self, model: str) -> ModelAdapter:
        """Return a model's adapter. Nothing heavy is loaded yet."""
        entry: ModelEntry = self.registry.model(model)
        kind: type[ModelAdapter] = self.plugins.load("adapter", entry.adapter)
        options = build_options(f"model {model}", kind.options, entry.settings)
        return kind(options)  # type: ignore[call-arg]  # every adapter takes its options record

    def adapter_class(self, model: str) -> type[ModelAdapter]:
        """Return the class that answers for a model."""
        return self.plugins.load("adapter", self.registry.model(model).adapter)  # type: ignore[no-any-return]

    def _make(self, contract: type, kind: str, name: str) -> Any:
        try:
            return self.plugins.load(kind, name)()
        except TypeError as error:
            owner = self.plugins.offers[kind][name].plugin
            raise PluginError(
                owner, f"{kind} {name!r} breaks the contract of {contract.__name__}: {error}.", code="plugin.contract"
            ) from error


class Instrument(msgspec.Struct, frozen=True, dict=True):
    """A probe and metrics with their options. Its stages are made once: some read or generate a whole data set."""

    probe: Probe
    options: Options
    metrics: dict[str, tuple[Metric, Options]]
    roles: frozenset[str] = frozenset()
    """The roles that have a model."""

    def stages(self) -> list[Stage]:
        """Return the stages, in order, less the optional ones that nobody is there to answer."""
        return [stage for stage in self.every_stage() if not stage.optional or stage.role in self.roles]

    def every_stage(self) -> list[Stage]:
        """Return the stages, in order."""
        return list(self._stages)

    @cached_property
    def _stages(self) -> tuple[Stage, ...]:
        return tuple(self.probe.stages(self.options))

    def files(self) -> list[str]:
        """Return the paths of the files that options of the metrics name."""
        named = (getattr(options, name) for metric, options in self.metrics.values() for name in sorted(metric.files))
        return [str(path) for path in named if path]

    def check(self) -> None:
        """Refuse a metric that needs columns which the last stage, or all stages together, do not give.

        Raises:
            UsageError: a wrong pairing.
        """
        stages = self.every_stage()
        for name, (metric, options) in self.metrics.items():
            given = set(ALWAYS) | ({STAGE} if metric.every_stage else set())
            for stage in stages if metric.every_stage else self.stages()[-1:]:
                given |= {*stage.factors, *stage.outcomes}
            if lacking := sorted(metric.columns(options) - given):
                gives = ", ".join(sorted(given))
                raise UsageError(
                    f"metric {name!r} needs {', '.join(lacking)}; the probe gives {gives}.", code="study.metric-columns"
                )


def _assign(entry: StudyEntry, assignments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Share `name=value` out between the probe and `metric.name=value` between the metrics."""
    options, metrics = dict(entry.options), {name: dict(values) for name, values in entry.metrics.items()}
    for name, value in assignments.items():
        metric, dot, option = name.partition(".")
        if dot and metric in metrics:
            metrics[metric][option] = value
        else:
            options[name] = value
    return options, metrics
