"""The catalogue: `registry.toml`, built in and the user's own, read into typed records.

The built-in file names adapters, models and the general metrics; studies come with plugins. A user's file adds to all
of these and overrides them entry by entry, as far as it is trusted (`trust`). A setting
`model = "package:prejudge.adapters.reference/fair"` is a folder inside an installed package; a path that begins with
`./` or `../` is relative to its file.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ..contracts.errors import DataError, UnknownNameError, UsageError
from ..contracts.inputs import load_toml
from ..contracts.options import plainly
from .material import Material
from .prices import Prices
from .published import Published as Published
from .published import PublishedTable, expand
from .questions import Question
from .variants import settings_in, split_name

FILE_NAME = "registry.toml"
SINGULAR = {
    **{"adapters": "adapter", "probes": "probe", "metrics": "metric"},
    **{"models": "model", "studies": "study", "defaults": "default"},
}
"""Name of an entry of each table of a registry."""
LOG = logging.getLogger(__name__)


class PluginEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An adapter, probe or metric by its import path."""

    target: str
    """`module:attribute`, loaded on first use."""
    summary: str = ""
    extra: str = ""
    """The extra that it needs."""
    gallery: str = ""
    """Of an adapter: the TOML file of the fair models that it plays in a calibration."""


class ModelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model by a short name."""

    adapter: str
    settings: dict[str, Any] = {}
    prices: Prices = Prices()
    """US dollars: `input` and `output` per million tokens, `request` and `image` each."""
    summary: str = ""
    source: str = ""


class TrainedDesign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the studies of trained models differ from the stated design: such a model knows few words."""

    options: dict[str, Any] = {}
    """Options of the probe and `METRIC.option`."""
    roles: dict[str, str] = {}
    """Models of roles other than `subject`."""
    data: str = ""
    """`module:function`, which takes the number of a study and a path, and writes the file of the option `data` there;
    empty: the file of the stated design."""


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a study is calibrated over the gallery (`prejudge lab calibrate`)."""

    options: dict[str, Any] = {}
    """The design, as options of the probe and `METRIC.option`; what is not set has its default."""
    like: str = ""
    """The registry's model whose settings the gallery's models have: the words of the study, so that they know groups
    and attributes. Its adapter registers the gallery. Empty: the default of `calibrate`."""
    settings: dict[str, Any] = {}
    """More settings, which come before those of `like`."""
    roles: dict[str, str] = {}
    """Models of roles other than `subject`; without them, that of the study, or else a fair model of the gallery."""
    planted: str = "strength"
    """The setting by which a bias is planted; empty: none can be planted in this study."""
    discoveries: dict[str, dict[str, Any]] = {}
    """Measures that count what is significant, with the levels of their default: of a fair model they are 0, but for
    one study in twenty."""
    sizes: tuple[str, ...] = ()
    """Options of `options` that say how much is asked, besides those that are numbers or lists."""
    real: dict[str, float] = {}
    """Trained models of the registry that are studied too, with the bias that is planted in each; 0: it is fair."""
    trained: TrainedDesign = TrainedDesign()
    """What is asked of those, where it is not the stated design."""
    none: str = ""
    """Why the study is not calibrated, as a sentence; empty: it is."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a small part of a study is taken (`--limit`, `--quick`)."""

    unit: tuple[str, ...] = ()
    """Factors of the first stage whose levels name a unit: all its trials are asked, or none, such as `["pair"]`."""
    cells: tuple[str, ...] = ()
    """Factors of which each level has equally many units; they are constant within a unit."""
    quick: dict[str, Any] = {}
    """Options of the probe that `--quick` sets, such as fewer repeats."""
    option: str = ""
    """The option of the probe that takes a part by itself, such as `per_cell`: the whole study is that without it."""

    @property
    def declared(self) -> bool:
        """Return whether it says how a part is taken."""
        return bool(self.unit)


class Multiverse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The defensible choices of a study (`prejudge lab multiverse`)."""

    measure: str = ""
    """The measure that answers the question; empty: that of the study's first question."""
    group: dict[str, Any] = {}
    """Its group, where that is not the whole study."""
    choices: dict[str, list[Any]] = {}
    """Values by choice, the study's own first: an option of the probe, `METRIC.option`, `role.ROLE` (models),
    `model.SETTING` (of the model that is studied, if it has such a setting), `measure`, or `group.FACTOR` (such as a
    threshold)."""


class StudyEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A study: a probe and its options, metrics, and the paper's values."""

    probe: str
    metrics: dict[str, dict[str, Any]]
    """Options by metric."""
    title: str = ""
    summary: str = ""
    source: str = ""
    options: dict[str, Any] = {}
    roles: dict[str, str] = {}
    """Models of the roles other than `subject`."""
    published: tuple[Published, ...] = ()
    tables: tuple[PublishedTable, ...] = ()
    """Published tables; `parse_registry` adds their cells to `published`."""
    deviations: tuple[str, ...] = ()
    """Differences from the paper."""
    limits: tuple[str, ...] = ()
    """Limitations of the results."""
    design: str = ""
    """Whose design it is, in a few words: reports of a user's own data name it. Empty: the title."""
    material: tuple[Material, ...] = ()
    """What holds only for the material of the study: limits and deviations of what it includes, and published files."""
    questions: tuple[Question, ...] = ()
    """What a report answers first; without them `summary`, by the first measure that is judged."""
    calibration: Calibration = Calibration()
    limit: Limits = Limits()
    multiverse: Multiverse = Multiverse()
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Seed of the probe and of every metric that has the option and does not set it."""


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All entries by kind and name."""

    adapters: dict[str, PluginEntry] = {}
    probes: dict[str, PluginEntry] = {}
    metrics: dict[str, PluginEntry] = {}
    models: dict[str, ModelEntry] = {}
    studies: dict[str, StudyEntry] = {}
    defaults: dict[Literal["compare", "ranks", "calibrate", "folder", "table"], str] = {}
    """The metric that `compare` and `ranks` compute, the model with which `calibrate` makes a study, and the probes
    that read a folder and a table of outcomes."""

    def model(self, name: str) -> ModelEntry:
        """Return a model by its name, or by `ADAPTER:MODEL`, such as `hf-masked:./my-bert`.

        Settings in brackets behind either are set over its own: `qwen[thinking=low]`.

        Raises:
            UnknownNameError: it is neither.
            UsageError: the name of an adapter alone.
        """
        if name in self.models:
            return self.models[name]
        base, settings = split_name(name)
        if settings:
            entry = self.model(base)
            return msgspec.structs.replace(entry, settings=entry.settings | settings_in(settings))
        adapter, colon, model = name.partition(":")
        if colon and adapter in self.adapters:
            return ModelEntry(adapter=adapter, settings={"model": model})
        if colon and "/" not in adapter:
            raise UnknownNameError("adapter", adapter, self.adapters)
        if name in self.adapters:
            raise UsageError(
                f"{name!r} is an adapter. Name a model too, as {name}:MODEL, or by a name of the registry.",
                code="registry.model-missing",
            )
        hint = "Or name a folder, such as ./my-bert, or ADAPTER:MODEL, such as hf-masked:./my-bert."
        raise UnknownNameError("model", name, self.models, f"To read the folder here: ./{name}" if here(name) else hint)

    def study(self, name: str) -> StudyEntry:
        """Return a study by its name.

        Raises:
            UnknownNameError: there is none.
        """
        if name not in self.studies:
            raise UnknownNameError("study", name, self.studies)
        return self.studies[name]


def assign(entry: StudyEntry, assignments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Divide options into those of the probe (`name=value`) and of the metrics (`metric.name=value`)."""
    options, metrics = dict(entry.options), {name: dict(values) for name, values in entry.metrics.items()}
    for name, value in assignments.items():
        metric, dot, option = name.partition(".")
        if dot and metric in metrics:
            metrics[metric][option] = value
        else:
            options[name] = value
    return options, metrics


def here(name: str) -> bool:
    """Return whether there is a file or folder of this name in the working directory."""
    try:
        return bool(name) and Path(name).exists()
    except (OSError, ValueError):
        return False


def parse_registry(text: str, where: str, folder: Path | None = None) -> Registry:
    """Read a catalogue; `where` names it in errors.

    Raises:
        DataError: it is not valid TOML, or a value has the wrong type.
        UnknownNameError: it has an unknown key.
    """
    return settled(read_registry(parse_toml(text, where), where), folder)


@lru_cache(64)
def _parsed(text: str, where: str) -> bytes:
    # Every catalogue reads the shipped files anew, and may change what it read: this is a copy in a tenth of the time.
    return pickle.dumps(load_toml(text, where))


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Read TOML; `where` names it in the error.

    Raises:
        DataError: it is not valid.
    """
    data: dict[str, Any] = pickle.loads(_parsed(text, where))
    LOG.info("read %s", where)
    return data


def read_registry(data: Mapping[str, Any], where: str) -> Registry:
    """Make a catalogue from the content of a file; its paths stay as they are written (see `settled`).

    Raises:
        DataError: a value has the wrong type.
        UnknownNameError: it has an unknown key.
    """
    try:
        registry = msgspec.convert(data, Registry)
    except msgspec.ValidationError as error:
        # All records refuse unknown keys, so that the slow search for them is needed only after an error.
        check_keys(data, Registry, where)
        raise _wrong_entry(data, where) or DataError(f"{where}: {plainly(error)}", code="registry.entry") from None
    studies = {name: _tabled(entry, f"{where}: study {name!r}") for name, entry in registry.studies.items()}
    return msgspec.structs.replace(registry, studies=studies)


def settled(registry: Registry, folder: Path | None) -> Registry:
    """Return the catalogue with absolute paths of models and galleries, of which those with a dot are in `folder`."""
    models = {
        name: msgspec.structs.replace(entry, settings={k: locate(v, folder) for k, v in entry.settings.items()})
        for name, entry in registry.models.items()
    }
    adapters = {
        name: msgspec.structs.replace(entry, gallery=locate(entry.gallery, folder))
        for name, entry in registry.adapters.items()
    }
    return msgspec.structs.replace(registry, models=models, adapters=adapters)


def _wrong_entry(data: Mapping[str, Any], where: str) -> DataError | None:
    """Return the error of the first invalid entry, with its name, since msgspec does not name keys of tables."""
    for kind, hint in get_type_hints(Registry).items():
        entries = data.get(kind, {})
        for name, entry in entries.items() if isinstance(entries, Mapping) else ():
            try:
                msgspec.convert(entry, get_args(hint)[1])
            except msgspec.ValidationError as error:
                what = f"{SINGULAR[kind]} {name!r}"
                return DataError(f"{where}: {what}: {plainly(error)}", code="registry.entry", entry=what)
    return None


def _tabled(entry: StudyEntry, where: str) -> StudyEntry:
    try:
        return msgspec.structs.replace(entry, published=expand(entry.published, entry.tables), tables=())
    except DataError as error:
        raise DataError(f"{where}: {error}", code="registry.entry") from None


def locate(value: Any, folder: Path | None) -> Any:
    """Make a path absolute: `package:NAME/PATH`, or a path that begins with a dot; other values are unchanged."""
    if not isinstance(value, str):
        return value
    if value.startswith("package:"):
        package, _, inner = value.removeprefix("package:").partition("/")
        try:
            return str(files(package).joinpath(inner))
        except (ImportError, TypeError, ValueError) as error:
            raise DataError(f"{value!r} names no file: {error}.", code="registry.entry") from None
    if folder is not None and value.startswith(("./", "../")):
        return str((folder / value).resolve())
    return value


def check_keys(data: Any, kind: Any, where: str) -> None:
    """Find an unknown key, and name the most similar known one, which msgspec's errors do not.

    `where` is the owner of the keys: a file, then `study 'mine' in my.toml`, then `published 1 of study 'mine' ...`.

    Raises:
        UnknownNameError: the first such key.
    """
    if get_origin(kind) is dict and isinstance(data, Mapping):
        for name, value in data.items():
            table, _, path = where.partition(" ")
            place = f"{SINGULAR[table]} {name!r} {path}" if table in SINGULAR else f"{name!r} of {where}"
            check_keys(value, get_args(kind)[1], place)
    elif get_origin(kind) is tuple and isinstance(data, list):
        for number, value in enumerate(data, 1):
            table, _, path = where.partition(" ")
            check_keys(value, get_args(kind)[0], f"{table} {number} {path}")
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(data, Mapping):
        hints = get_type_hints(kind)
        for name, value in data.items():
            if name not in hints:
                raise UnknownNameError(f"key of {where}", name, hints)
            check_keys(value, hints[name], f"{name} {'in' if kind is Registry else 'of'} {where}")
