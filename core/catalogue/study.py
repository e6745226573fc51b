"""`Study`: the probe, models and metrics of a run; resolved from the catalogue and frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from ..contracts import Metric, Probe, Stage
from ..contracts.abilities import OPERATIONS, Abilities, Need
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import PluginError, PrejudgeError, UsageError
from ..contracts.options import build_options, choices_of
from ..contracts.probe import ReadsFolders, stage_need
from ..contracts.secrets import looks_secret, secret_place
from ..contracts.thinking import Level, ensure_level, settings_at
from ..design import Roles
from .built import ensure_built, settings_placed
from .folders import Candidate, candidates, choose, is_place
from .instrument import Instrument
from .judging import Judge
from .limiting import Limit, limit_study, split_limit
from .material import wordings_of, words_on
from .plugins import Plugins
from .question_checks import ensure_questions
from .questions import Question
from .refusal_stage import ROLE, kind_for
from .registry import Limits, ModelEntry, PluginEntry, Published, Registry, StudyEntry, assign
from .studyfile import is_study_file, is_study_folder, study_at
from .trust import Want, ensure_hub_name, load_allowed, load_registry
from .variants import THINKING, split_name

SUBJECT = "subject"


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """A study with all its options and models. The run's manifest has it, so that the run can be scored again."""

    name: str
    probe: str
    options: dict[str, Any]
    """Options that were set; all others have the probe's defaults."""
    metrics: dict[str, dict[str, Any]]
    roles: dict[str, str]
    """Model by role."""
    title: str = ""
    summary: str = ""
    source: str = ""
    published: tuple[Published, ...] = ()
    deviations: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    own_data: tuple[str, ...] = ()
    """Material of the user's own files: `pairs of FILE (sha256 ...)`; empty: that of the study, or published."""
    words: dict[str, str] = {}
    """What stands in the place of words in the sentences of the study and its metrics, of a user's own data."""
    population: str = ""
    """Whom the user's own data are about, as their folder says."""
    questions: tuple[Question, ...] = ()
    followed: dict[str, str] = {}
    """Options that nobody set and that follow from what a model can do, with the reason."""
    limit: Limit | None = None
    """What part of the study is asked; None: all of it."""
    recognised: dict[str, str] = {}
    """By role, what the files of a model said that was named by its place alone."""

    @property
    def notes(self) -> list[str]:
        """Return a sentence per model named by its place, and per option that follows."""
        read = [f"{role}: read as {self.roles[role]}, since {why}." for role, why in self.recognised.items()]
        return read + [
            f"{name} = {self.options[name]}, because {why}. To choose another: --set {name}=VALUE."
            for name, why in self.followed.items()
        ]


class Catalogue:
    """The registry and the plugins, looked up by name."""

    def __init__(self, registry: Registry, plugins: Plugins, left_out: Sequence[Want] = ()) -> None:
        self.registry, self.plugins, self.left_out = registry, plugins, left_out
        self._last: tuple[object, Instrument] | None = None

    @classmethod
    def load(cls, registry: str | None = None) -> Catalogue:
        """Return the catalogue with the user's registry and the installed plugins."""
        return cls._with(load_registry(registry))

    @classmethod
    def load_allowed(cls) -> Catalogue:
        """Return the catalogue without what a registry that is not trusted may not do, which `left_out` lists."""
        return cls._with(*load_allowed())

    @classmethod
    def _with(cls, entries: Registry, left_out: Sequence[Want] = ()) -> Catalogue:
        plugins = Plugins(entries)
        # ADAPTER:MODEL works for the adapters of all plugins.
        adapters = {
            name: entries.adapters.get(name) or PluginEntry(str(offer.plugged.target), offer.plugged.summary)
            for name, offer in plugins.offers["adapter"].items()
        }
        studies = plugins.studies | entries.studies
        return cls(msgspec.structs.replace(entries, adapters=adapters, studies=studies), plugins, left_out)

    def study(self, name: str, models: Mapping[str, str], assignments: Mapping[str, Any]) -> Study:
        """Return a study with a model for each role, and options set: `per_cell` or `METRIC.resamples`.

        Every study takes `limit`, the most units of its first stage, and `quick`: see `limiting`.

        `name` is a study of the catalogue, or a study file (`my-study.toml`).

        Raises:
            DataError: the study file cannot be used.
            UnknownNameError: the study, a model or an option is unknown.
        """
        name = self.adopt(name)
        entry = self._seeded(self.registry.study(name))
        chosen_options, limit = split_limit(self.plugins.load("probe", entry.probe).options, assignments)
        options, metrics = assign(entry, chosen_options)
        options = wordings_of(entry, options, self.plugins.load("probe", entry.probe).options.worded) | options
        ensure_no_secret(f"study {name}", options | metrics)
        roles = entry.roles | dict(models)
        ways_of = {role: candidates(model, self.plugins) for role, model in roles.items() if is_place(model)}
        for role, model in roles.items():
            if role not in ways_of:
                self.registry.model(model)
        study = Study(
            name=name,
            probe=entry.probe,
            options=options,
            metrics=metrics,
            roles=roles | {role: ways[0].name for role, ways in ways_of.items()},
            published=entry.published,
            questions=entry.questions,
        )
        study = self.described(study)
        for role, ways in ways_of.items():
            chosen = ways[0] if len(ways) == 1 else self._choose(study, role, roles[role], ways)
            study = msgspec.structs.replace(
                study,
                roles=study.roles | {role: chosen.name},
                recognised=study.recognised | {role: chosen.because},
            )
        study = self._following(study)
        return study if limit is None else limit_study(self, study, self._limits_of(entry), limit)

    def described(self, study: Study) -> Study:
        """Return a study with the words on its material: source and limits follow the data that it reads."""
        words = words_on(self.registry.study(study.name), study.name, study.options)
        return msgspec.structs.replace(study, **words | {"questions": words["questions"] or study.questions})

    def whole(self, study: Study) -> Study:
        """Return a study without a limit on how much is asked, and what the limit sets; itself, if it has none."""
        entry = self.registry.studies.get(study.name)
        named = self._limits_of(entry).option if entry is not None and entry.probe == study.probe else ""
        limited = {named, *(study.limit.also if study.limit is not None else ())}
        options = {name: value for name, value in study.options.items() if name not in limited}
        return msgspec.structs.replace(study, options=options, limit=None)

    def _limits_of(self, entry: StudyEntry) -> Limits:
        """Return how a part of a study is taken: as it declares, or as the studies of the same probe that do."""
        if entry.limit.declared:
            return entry.limit
        declared = {name: study.limit for name, study in self.registry.studies.items() if study.probe == entry.probe}
        limited = [limits for limits in declared.values() if limits.declared]
        equal = all(limits == limited[0] for limits in limited)
        return limited[0] if limited and equal else declared.get(entry.probe, entry.limit)

    def _choose(self, study: Study, role: str, place: str, ways: Sequence[Candidate]) -> Candidate:
        """Return the way to read a folder that can do what the study needs of the role.

        Raises:
            ModelLoadError: several can.
        """

        def able(candidate: Candidate) -> bool:
            tried = self._following(msgspec.structs.replace(study, roles=study.roles | {role: candidate.name}))
            stages = self.instrument(tried).stages()
            abilities = self.abilities(candidate.name)
            return not any(abilities.missing(stage_need(stage)) for stage in stages if stage.role == role)

        fit = [candidate for candidate in ways if able(candidate)]
        # Where none can, the check of the study says so of the first.
        return choose(place, fit, f" for the role {role!r} of {study.name!r}") if fit else ways[0]

    def named(self, model: str) -> str:
        """Return the name of a model: for a place, `ADAPTER:MODEL`; any other is returned unchanged.

        Raises:
            ModelLoadError: there is no model at the place, or several adapters read it.
        """
        return choose(model, candidates(model, self.plugins)).name if is_place(model) else model

    def _following(self, study: Study) -> Study:
        """Return a study with the options that follow from what its models can do."""
        followed = self._follow(study.probe, study.options, study.roles)
        return msgspec.structs.replace(
            study,
            options=study.options | {name: value for name, (value, _) in followed.items()},
            followed={name: why for name, (_, why) in followed.items()},
        )

    def _follow(self, probe: str, options: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Return value and reason of each unset option that follows from a model; none where the default fits it."""
        chosen = {}
        for rule in self.plugins.load("probe", probe).follows:
            model = roles.get(rule.role)
            if model is None or rule.option in options:
                continue
            (_, preferred), *_ = rule.values
            needs = {value: Need(operation=OPERATIONS[kind]) for value, kind in rule.values}
            able = next((value for value in rule.values if self.is_suited(model, needs[value[0]])), rule.values[0])
            if able is not rule.values[0]:
                names = f"can do {OPERATIONS[able[1]]!r}, not {OPERATIONS[preferred]!r}"
                chosen[rule.option] = (able[0], f"model {model!r} {names}")
        return chosen

    def adopt(self, name: str) -> str:
        """Add the study of a study file to the registry, and return its name; any other name is returned unchanged.

        Raises:
            DataError: the study file cannot be used.
            UnknownNameError: it has an unknown key, or names an unknown probe or metric.
            UsageError: it names code, a secret or an address, or nothing answers one of its questions.
        """
        if name in self.registry.studies or not (is_study_file(name) or is_study_folder(name)):
            return name
        study_name, entry = study_at(name, self.folder_probe)
        offered = {study.calibration.trained.data for study in self.plugins.studies.values()}
        judge = Judge(Path.cwd(), self.plugins, self.registry)
        if effect := next(judge.study_file(entry, offered), None):
            raise UsageError(
                f"{name} {effect.sentence}, which a study file may not: it is data. Name a model by --model ROLE=NAME "
                "or in a registry, and offer a study with functions from a package.",
                code="study.effects",
            )
        ensure_questions(self.plugins, entry)
        # The models of a folder are proposals: those that are asked are named by the user.
        self.registry.studies[study_name] = entry if is_study_file(name) else msgspec.structs.replace(entry, roles={})
        return study_name

    @property
    def folder_probe(self) -> ReadsFolders:
        """Return the probe that reads a study from a folder."""
        probe: ReadsFolders = self.plugins.load("probe", self.registry.defaults["folder"])()
        return probe

    def _seeded(self, entry: StudyEntry) -> StudyEntry:
        """Set the study's seed for the probe and the metrics that have the option, if it is not set."""
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

    def instrument(self, study: Study, design: Roles | None = None) -> Instrument:
        """Load the study's probe and metrics, and check that they fit together.

        The same study gives the same instrument, so that a run is scored with the stages with which it was asked.

        Args:
            study: with its options.
            design: what a run recorded of its design, which then needs no file of the study.
        """
        named = [("probe", study.probe), *(("metric", name) for name in study.metrics)]
        asked = (msgspec.json.encode(study), [self.plugins.load(kind, name) for kind, name in named], design)
        if self._last is None or self._last[0] != asked:
            self._last = (asked, self._instrument(study, design))
        return self._last[1]

    def _unsettled(self, study: Study, design: Roles | None = None) -> Instrument:
        """Return the instrument before its metrics know what the design samples, which takes most of the time."""
        probe = self._make(Probe, "probe", study.probe)
        metrics = {name: self._make(Metric, "metric", name) for name in study.metrics}
        return Instrument(
            probe=probe,
            options=build_options(study.name, probe.options, study.options),
            limit=study.limit,
            roles=frozenset(study.roles),
            refusals=kind_for(lambda need: ROLE in study.roles and self.is_suited(study.roles[ROLE], need)),
            metrics={n: (metrics[n], build_options(n, metrics[n].options, v)) for n, v in study.metrics.items()},
            recorded=design,
        )

    def _instrument(self, study: Study, design: Roles | None = None) -> Instrument:
        instrument = self._unsettled(study, design)
        settled = {
            name: (metric, metric.settled(options, lambda: instrument.facets))
            for name, (metric, options) in instrument.metrics.items()
        }
        instrument.ensure_sampled({name: chosen.get("over", ()) for name, chosen in study.metrics.items()})
        recorded = instrument.__dict__.get("design", design)
        instrument = msgspec.structs.replace(instrument, metrics=settled, recorded=recorded)
        instrument.check()
        return instrument

    def adapter(self, model: str) -> ModelAdapter:
        """Return a model's adapter. Weights are not loaded yet; a model of a recipe is made at its first use."""
        base, _ = split_name(model)
        if model not in self.registry.models and base != model:
            ensure_hub_name(base, self.registry.model(base))
        entry: ModelEntry = self.registry.model(model)
        ensure_hub_name(model, entry)
        # Addresses are not: an adapter says itself what of one it stores.
        stored = {name: value for name, value in entry.settings.items() if not name.endswith("url")}
        ensure_no_secret(f"model {base}", stored)
        kind = self.adapter_class(model)
        ensure_built(entry.settings)
        return kind(self.options_of(model))

    def options_of(self, model: str) -> msgspec.Struct:
        """Return the options record of a model's adapter; its level of thinking is put into the adapter's own settings.

        Raises:
            UsageError: a setting is unknown or invalid, or the model cannot be told how much to think.
        """
        kind, settings = self.adapter_class(model), settings_placed(self.registry.model(model).settings)
        if isinstance(name := settings.get("model"), str) and not name.strip():
            raise UsageError(
                f"model {model}: the setting 'model' is empty. Name the model.", code="options.value", name="model"
            )
        level = settings.get(THINKING)
        if level is not None and (level in get_args(Level) or THINKING not in kind.options.__struct_fields__):
            settings = dict(settings_at(kind.options, ensure_level(settings.pop(THINKING)), settings))
            self._ensure_heeded(model, settings)
        return build_options(f"model {model}", kind.options, settings)

    def _ensure_heeded(self, model: str, told: Mapping[str, Any]) -> None:
        """Refuse an entry whose level of thinking replaces another of its settings; in a variant that is its purpose.

        Raises:
            UsageError: naming both.
        """
        base = model if model in self.registry.models else split_name(model)[0]
        settings = self.registry.model(base).settings
        for name, value in settings.items() if THINKING in settings else ():
            if name not in (THINKING, "answer_room") and not isinstance(value, Mapping) and told.get(name) != value:
                raise UsageError(
                    f"model {base}: {THINKING} = {settings[THINKING]!r} and {name} = {value!r} exclude each other. "
                    "Leave one out.",
                    code="options.conflict",
                    name=name,
                )

    def abilities(self, model: str) -> Abilities:
        """Return what a model can do, by its class, its settings and small files on this machine.

        Making the model may need a key or a download, so nobody makes it for this.

        Raises:
            PrejudgeError: its settings or its adapter are invalid.
        """
        return self.adapter_class(model).abilities(self.options_of(model))

    def is_suited(self, model: str, need: Need) -> bool:
        """Return whether a model can do what is needed; not if its settings or its adapter are invalid."""
        try:
            return not self.abilities(model).missing(need)
        except PrejudgeError:
            return False  # an error only for those who ask the model

    def proposals(self, study: Study) -> Iterator[tuple[str, Any]]:
        """Yield the options of the probe, one changed at a time, with which the models can do all that it needs."""
        for name, value, stages in self.varied(study):
            try:
                able = not any(
                    self.abilities(study.roles[stage.role]).missing(stage_need(stage))
                    for stage in stages
                    if stage.role in study.roles
                )
            except PrejudgeError:
                continue
            if able:
                yield name, value

    def varied(self, study: Study) -> Iterator[tuple[str, Any, list[Stage]]]:
        """Yield each choice among a few of an option of the probe, one changed at a time, with the stages it gives."""
        kind = self.plugins.load("probe", study.probe)
        values = {rule.option: [value for value, _ in rule.values] for rule in kind.follows}
        for name, choices in (choices_of(kind.options) | values).items():
            for value in choices:
                tried = msgspec.structs.replace(study, options=study.options | {name: value})
                try:
                    instrument = self._unsettled(tried)
                    instrument.check()
                except PrejudgeError:
                    continue  # this option does not go with the others
                yield name, value, instrument.stages()

    def adapter_class(self, model: str) -> type[ModelAdapter]:
        """Return the adapter class of a model."""
        return self.plugins.load("adapter", self.registry.model(model).adapter)  # type: ignore[no-any-return]

    def _make(self, contract: type, kind: str, name: str) -> Any:
        try:
            return self.plugins.load(kind, name)()
        except TypeError as error:
            owner = self.plugins.offers[kind][name].plugin
            raise PluginError(
                owner, f"{kind} {name!r} breaks the contract of {contract.__name__}: {error}.", code="plugin.contract"
            ) from error


def ensure_no_secret(owner: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings that look like a secret, because they are stored with the answers; the value is not shown.

    Raises:
        UsageError: naming the setting.
    """
    if (place := secret_place(settings)) is not None:
        what = owner if not looks_secret(owner) else owner.partition(" ")[0]
        raise UsageError(
            f"{place!r} of {what} looks like a secret, and settings are stored with the answers. Put the secret into "
            "an environment variable; the adapter's page says which setting names that.",
            code="options.secret",
        )
