"""Plugins: pluggy hooks that only register, and a loader in which a broken plugin disables only itself.

A distribution names a module in the entry-point group `prejudge`; the module implements any of the four hooks. The
built-ins come in through the same hooks, with the strings that `registry.toml` lists.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import msgspec
import pluggy

from ..contracts import Metric, Probe
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import PluginError, PrejudgeError, UnknownNameError
from .registry import Registry

LOG = logging.getLogger(__name__)
GROUP = "prejudge"
BUILT_IN = "prejudge"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


class Plugged(msgspec.Struct, frozen=True):
    """One thing a plugin offers: a class, or `module:attribute`, which is loaded on first use."""

    name: str
    target: str | type
    summary: str = ""
    extra: str = ""


class Hooks:
    """The hooks."""

    @hookspec
    def prejudge_adapters(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the model adapters you offer."""

    @hookspec
    def prejudge_probes(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the probes you offer."""

    @hookspec
    def prejudge_metrics(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the metrics you offer."""

    @hookspec
    def prejudge_commands(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the click commands you add to the command line."""


class BuiltIns:
    """The catalogue as a plugin like any other."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    @hookimpl
    def prejudge_adapters(self) -> Iterable[Plugged]:
        """Return the catalogue's adapters."""
        return [Plugged(name, e.target, e.summary, e.extra) for name, e in self.registry.adapters.items()]

    @hookimpl
    def prejudge_probes(self) -> Iterable[Plugged]:
        """Return the catalogue's probes."""
        return [Plugged(name, e.target, e.summary, e.extra) for name, e in self.registry.probes.items()]

    @hookimpl
    def prejudge_metrics(self) -> Iterable[Plugged]:
        """Return the catalogue's metrics."""
        return [Plugged(name, e.target, e.summary, e.extra) for name, e in self.registry.metrics.items()]


class Registered(NamedTuple):
    """A thing on offer, and the plugin it came from."""

    plugged: Plugged
    plugin: str


KINDS: dict[str, type | None] = {"adapter": ModelAdapter, "probe": Probe, "metric": Metric, "command": None}


class Plugins:
    """What is on offer, by kind and name; `problems` lists the plugins that were disabled, and why."""

    def __init__(self, registry: Registry, found: Iterable[EntryPoint] | None = None) -> None:
        self.problems: list[str] = []
        self.loaded: list[str] = []
        self.offers: dict[str, dict[str, Registered]] = {kind: {} for kind in KINDS}
        self._add(BUILT_IN, lambda: BuiltIns(registry))
        for entry in sorted(found_plugins() if found is None else found, key=lambda entry: entry.name):
            self._add(_label(entry), entry.load)

    def load(self, kind: str, name: str) -> Any:
        """Return the class (or command) registered under a name, importing it now.

        Raises:
            UnknownNameError: nothing has that name.
            PluginError: it cannot be imported, or is not what it says.
        """
        if name not in self.offers[kind]:
            raise UnknownNameError(kind, name, self.offers[kind])
        plugged, plugin = self.offers[kind][name]
        target = load_target(plugged.target, plugin) if isinstance(plugged.target, str) else plugged.target
        LOG.debug("%s %s is %s of plugin %s", kind, name, plugged.target, plugin)
        contract = KINDS[kind]
        if contract is not None and not (isinstance(target, type) and issubclass(target, contract)):
            raise PluginError(
                plugin, f"{kind} {name!r} is {target!r}, not a subclass of {contract.__name__}.", code="plugin.contract"
            )
        return target

    def _add(self, plugin: str, load: Callable[[], Any]) -> None:
        """Take in one plugin whole, or not at all."""
        try:
            offered = _ask(load(), plugin)
            for kind, things in offered.items():
                self._check_names(kind, things)
        except (Exception, SystemExit) as error:  # a stranger's module may raise anything; only it may suffer for it
            self.problems.append(f"plugin {plugin!r} is disabled: {type(error).__name__}: {error}")
            return
        self.loaded.append(plugin)
        for kind, things in offered.items():
            self.offers[kind].update({thing.name: Registered(thing, plugin) for thing in things})

    def _check_names(self, kind: str, things: list[Plugged]) -> None:
        for thing in things:
            if thing.name in self.offers[kind]:
                owner = self.offers[kind][thing.name].plugin
                raise ValueError(f"the {kind} name {thing.name!r} is taken by plugin {owner!r}")


@contextmanager
def blamed(plugin: str, what: str) -> Iterator[None]:
    """Turn whatever goes wrong in a plugin's own code into a `PluginError` that names it.

    The framework's own errors pass: a plugin may raise them to say what a person can mend.
    """
    try:
        yield
    except PrejudgeError:
        raise
    except Exception as error:
        raise PluginError(
            plugin, f"{what} failed: {type(error).__name__}: {error}. See --debug.", code="plugin.failed"
        ) from error


def found_plugins(environment: Mapping[str, str] = os.environ) -> list[EntryPoint]:
    """Return the installed entry points; none if `PREJUDGE_PLUGINS` is `none`."""
    if environment.get("PREJUDGE_PLUGINS", "").lower() == "none":
        return []
    return list(entry_points(group=GROUP))


def load_target(target: str, plugin: str) -> Any:
    """Import `module:attribute`.

    Raises:
        PluginError: it cannot be imported.
    """
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        mend = "" if not isinstance(error, ModuleNotFoundError) else " Install it, or name its folder in PYTHONPATH."
        raise PluginError(plugin, f"cannot load {target!r}: {error}.{mend}", code="plugin.load") from error


def _ask(module: Any, plugin: str) -> dict[str, list[Plugged]]:
    """Return what one plugin offers. A manager of its own: pluggy then checks this plugin's hooks, and no other's."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    manager.register(module, name=plugin)
    manager.check_pending()
    hooks = {"adapter": "adapters", "probe": "probes", "metric": "metrics", "command": "commands"}
    answers = {kind: getattr(manager.hook, f"prejudge_{plural}")() for kind, plural in hooks.items()}
    offered = {kind: [thing for things in answer for thing in things] for kind, answer in answers.items()}
    for thing in (thing for things in offered.values() for thing in things):
        if not isinstance(thing, Plugged):
            raise TypeError(f"a hook returned {thing!r}; return prejudge.Plugged records")
    return offered


def _label(entry: EntryPoint) -> str:
    return f"{entry.dist.name}:{entry.name}" if entry.dist else entry.name
