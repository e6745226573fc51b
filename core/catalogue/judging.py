"""What models and studies do beyond computing, judged for somebody who did not name them.

Options declare their effects (`contracts.effects`). This module decides which of them need trust: a secret, code, an
option that nobody declared, an address that is not this machine's own, and a file outside of a folder. It imports
adapters, probes and metrics, and none of their backends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from ..contracts import Options
from ..contracts.effects import (
    OptionEffect,
    effects_declared,
    effects_of_values,
    text_options,
    texts_in,
    undeclared_options,
)
from ..contracts.errors import DataError, PrejudgeError
from ..contracts.options import build_options
from ..contracts.thinking import Level, settings_at
from .built import is_built
from .folders import candidates, is_place
from .plugins import BUILT_IN, Plugins
from .registry import ModelEntry, PluginEntry, Registry, StudyEntry, locate
from .variants import THINKING, settings_in, split_name

_LOOPBACK = re.compile(
    r"https?://(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?(?:/[\w./-]*)?", re.ASCII
)
_OWN_RECIPE = re.compile(rf"built:{BUILT_IN}(?:\.\w+)*/[\w.-]+", re.ASCII)
_OWN_PACKAGE = re.compile(rf"package:{BUILT_IN}(?:\.\w+)*(?:/.*)?", re.ASCII)

ROLE = "role."
NO_OPTIONS = (ROLE, "measure", "group.")
"""Choices of a multiverse that are no options."""


class Judge:
    """Says what needs trust of models and studies whose files lie in one folder."""

    def __init__(self, folder: Path, plugins: Plugins, registry: Registry) -> None:
        """Take the folder, the plugins, and the models by the names that studies use, with paths as written."""
        self._folder, self._plugins = folder.resolve(), plugins
        adapters = {name: PluginEntry(str(offer.plugged.target)) for name, offer in plugins.offers["adapter"].items()}
        self._registry = Registry(models=registry.models, adapters=adapters, defaults=registry.defaults)

    def model(self, entry: ModelEntry) -> Iterator[OptionEffect]:
        """Yield what needs trust of a model."""
        if entry.adapter not in self._plugins.offers["adapter"]:
            yield _of_adapter(entry.adapter, "is not known here")
        foreign = list(self._of_other_packages(entry.settings))
        yield from foreign
        # What names another package is not looked at further: that would import it.
        if not foreign and entry.adapter in self._plugins.offers["adapter"]:
            yield from self._beyond(self.effects(entry))

    def named(self, name: str) -> Iterator[OptionEffect]:
        """Yield what needs trust of a model that a study names: by the registry, `ADAPTER:MODEL`, or a place."""
        if not is_place(name):
            try:
                entry = self._registry.model(name)
            except PrejudgeError:
                return  # it cannot be asked
            yield from self.model(entry)
            return
        path = split_name(name)[0]
        if self._leaves(path):
            yield from self._beyond([OptionEffect("file", "model", path)])
            return
        try:
            ways = candidates(name, self._plugins)
        except PrejudgeError:
            return
        for way in ways:
            yield from self.named(way.name)

    def recorded(self, name: str) -> Iterator[OptionEffect]:
        """Yield what needs trust of a model that a record names, such as a run of a store.

        Names of the registry are the user's own, and so is the address of an adapter with the key that belongs there;
        settings in brackets and paths are those of whoever made the record.
        """
        base, brackets = split_name(name)
        try:
            entry, chosen = self._registry.model(name), settings_in(brackets) if brackets else {}
        except PrejudgeError:
            yield from self.named(name)
            return
        declared = set(self._harmless(entry.adapter))
        if not chosen.keys() <= declared:
            yield from self.model(entry)
        elif base not in self._registry.models:
            yield from (effect for effect in self.model(entry) if effect.kind not in ("secret", "address"))

    def study(self, study: StudyEntry) -> Iterator[OptionEffect]:
        """Yield what needs trust of a study: of its options, its models, and its calibration."""
        calibration = study.calibration
        choices = [(name, value) for name, values in study.multiverse.choices.items() for value in values]
        designs = [study.options, calibration.options, calibration.trained.options, study.limit.quick]
        designs += [{name: value} for name, value in choices if not name.startswith(NO_OPTIONS)]
        for design in designs:
            yield from self.options(study.probe, study.metrics, design)
        if calibration.trained.data:
            yield OptionEffect("code", "calibration.trained.data", calibration.trained.data)
        if calibration.settings:
            yield from self._of_other_packages(calibration.settings)
            yield from self._like(
                calibration.like or self._registry.defaults.get("calibrate", ""), calibration.settings
            )
        for role, model in _models_of(study):
            yield from (_asked(effect, model, role) for effect in self.named(model))

    def study_file(self, study: StudyEntry, offered: Container[str]) -> Iterator[OptionEffect]:
        """Yield what a study file that the user named may not do: it is data, and runs no code.

        It may name models of the registry and `ADAPTER:MODEL`, and functions for data that plugins `offered`.
        """
        if (target := study.calibration.trained.data) and target not in offered:
            yield OptionEffect("code", "calibration.trained.data", target, f"calls the function {target!r}")
        for role, model in _models_of(study):
            yield from (_asked(effect, model, role) for effect in self.recorded(model) if effect.kind != "file")

    def options(
        self, probe: str, metrics: Mapping[str, Mapping[str, Any]], chosen: Mapping[str, Any]
    ) -> Iterator[OptionEffect]:
        """Yield what needs trust of options of a probe, of its metrics, and of `METRIC.option` among the first."""
        parts: dict[tuple[str, str], dict[str, Any]] = {("probe", probe): {}}
        parts |= {("metric", name): dict(values) for name, values in metrics.items()}
        for name, value in chosen.items():
            metric, dot, option = name.partition(".")
            part, key = (("metric", metric), option) if dot and metric in metrics else (("probe", probe), name)
            parts[part][key] = value
        for (kind, name), values in parts.items():
            yield from self._of_other_packages(values)
            yield from self._beyond(self._of_options(kind, name, values))

    def effects(self, entry: ModelEntry) -> Iterator[OptionEffect]:
        """Yield all that a model does, whether or not it needs trust."""
        try:
            kind = self._plugins.load("adapter", entry.adapter)
        except PrejudgeError:
            yield _of_adapter(entry.adapter, "cannot be loaded")
            return
        options = kind.options
        undeclared = undeclared_options(options)
        yield from (OptionEffect("undeclared", name) for name in undeclared)
        if not issubclass(options, Options) or not options.__struct_fields__:
            yield _of_adapter(entry.adapter, "does not declare what its options do")
            return
        if undeclared:
            return
        settings = self._placed(options, entry.settings)
        try:
            if isinstance(level := settings.get(THINKING), str) and THINKING not in options.__struct_fields__:
                settings = dict(settings_at(kind.options, msgspec.convert(level, Level), settings))
                settings.pop(THINKING, None)
            effects = list(build_options(entry.adapter, options, settings).list_effects())
        except Exception:  # whatever settings cannot be read, and whatever a plugin raises
            effects = list(effects_of_values(options, _known(options, settings)))
        yield from effects

    def _harmless(self, adapter: str) -> Iterator[str]:
        try:
            options = self._plugins.load("adapter", adapter).options
        except PrejudgeError:
            return
        yield THINKING
        yield from (name for name, effect in effects_declared(options).items() if effect == "none")

    def _of_options(self, kind: str, name: str, values: Mapping[str, Any]) -> Iterator[OptionEffect]:
        try:
            options = self._plugins.load(kind, name).options
        except PrejudgeError:
            return  # the study cannot be run
        # Probes and metrics are pure: what cannot be any text names no file, and does nothing else either.
        texts = text_options(options)
        yield from effects_of_values(options, {key: value for key, value in values.items() if key in texts})

    def _like(self, like: str, settings: Mapping[str, Any]) -> Iterator[OptionEffect]:
        try:
            entry = self._registry.model(like)
        except PrejudgeError:
            return
        changed = msgspec.structs.replace(entry, settings=entry.settings | dict(settings))
        yield from (_asked(effect, like, "calibration.like") for effect in self.model(changed))

    def _placed(self, options: type[msgspec.Struct], settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings whose files are those of the folder, wherever the command runs."""

        def place(value: Any) -> Any:
            if not isinstance(value, str) or not value or self._leaves(value) or is_built(value):
                return value
            return str(self._folder / value) if (self._folder / value).exists() else value

        declared = effects_declared(options)
        return {name: value if declared.get(name) == "none" else place(value) for name, value in settings.items()}

    def _beyond(self, effects: Iterable[OptionEffect]) -> Iterator[OptionEffect]:
        """Yield the effects that need trust."""
        for effect in effects:
            if effect.unless or (effect.kind == "address" and _LOOPBACK.fullmatch(effect.value)):
                continue
            if effect.kind != "file":
                yield effect
            elif not effect.value.startswith(("built:", "package:")) and self._leaves(effect.value):
                says = effect.says or f"reads files outside of its own directory: {effect.value!r}"
                yield msgspec.structs.replace(effect, says=says)

    def _of_other_packages(self, settings: Mapping[str, Any]) -> Iterator[OptionEffect]:
        for option, value in settings.items():
            for text in texts_in(value):
                if is_built(text) and not _OWN_RECIPE.fullmatch(text):
                    yield OptionEffect("code", option, text, f"runs a program of another package: {text!r}")
                elif text.startswith("package:") and not _is_of_package(text):
                    yield OptionEffect("file", option, text, f"reads files of another package: {text!r}")

    def _leaves(self, value: str) -> bool:
        """Return whether a text, taken as a path, leads out of the folder; links in a folder count."""
        if not value:
            return False
        if value.startswith("~") or ".." in re.split(r"[\\/]", value):
            return True
        try:
            place = (self._folder / value).resolve()
            return not place.is_relative_to(self._folder) or any(
                not target.is_relative_to(self._folder) for target in links_in(place).values()
            )
        except RuntimeError:
            return True  # a link to itself
        except (OSError, ValueError):
            return bool(Path(value).anchor)  # no path at all, such as a long text


def _models_of(study: StudyEntry) -> Iterator[tuple[str, str]]:
    """Yield the models that a study names, each with its role."""
    calibration = study.calibration
    yield from (*study.roles.items(), *calibration.roles.items(), *calibration.trained.roles.items())
    yield from (("calibration.real", model) for model in calibration.real)
    for name, models in study.multiverse.choices.items():
        if name.startswith(ROLE):
            yield from ((name.removeprefix(ROLE), str(model)) for model in models)


def _known(options: type[msgspec.Struct], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that there are: with another one nothing can be asked."""
    return {name: value for name, value in settings.items() if name in options.__struct_fields__}


def _of_adapter(adapter: str, what: str) -> OptionEffect:
    return OptionEffect("undeclared", "adapter", adapter, f"uses the adapter {adapter!r}, which {what}")


def _asked(effect: OptionEffect, model: str, role: str) -> OptionEffect:
    return msgspec.structs.replace(effect, says=f"asks {model!r} as {role}, which {effect.sentence}")


def _is_of_package(value: str) -> bool:
    if not _OWN_PACKAGE.fullmatch(value) or ".." in re.split(r"[\\/]", value):
        return False
    try:
        return Path(locate(value, None)).resolve().is_relative_to(Path(str(files(BUILT_IN))).resolve())
    except (DataError, ValueError, OSError):
        return True  # there is nothing to read


def links_in(folder: Path) -> dict[Path, Path]:
    """Return where each link in a folder, and below it, leads; of a folder that is a link, where that leads."""
    if folder.is_symlink():
        return {folder: Path(os.path.realpath(folder))}
    every = (Path(root, name) for root, folders, names in os.walk(folder) for name in (*folders, *names))
    return {path: Path(os.path.realpath(path)) for path in every if path.is_symlink()}
