"""Plugins: pluggy hooks that only register, and a loader in which a broken plugin disables only itself.

A distribution names a module in the entry-point group `prejudge`; the module implements any of the hooks of
`contracts/plugin.py`. The built-ins use the same hooks: the entries of `registry.toml`, and each folder of `adapters/`,
`metrics/` and `probes/` that has a `plugin.py`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

import pluggy

from ..contracts import Metric, Probe
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import PluginError, PrejudgeError, UnknownNameError
from ..contracts.plugin import GROUP, Hooks, Plugged, StudyFile, hookimpl
from .constructs import Construct, read_construct
from .registry import Registry, StudyEntry
from .studyfile import read_study_file

LOG = logging.getLogger(__name__)
T = TypeVar("T")
BUILT_IN = "prejudge"
ROOMS = ("adapters", "metrics", "probes")
"""Folders of this package that contain plugins."""


class BuiltIns:
    """The catalogue as a plugin."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    @hookimpl
    def prejudge_adapters(self) -> Iterable[Plugged]:
        """Return the catalogue's adapters."""
        return [Plugged(name, e.target, e.summary, e.extra, e.gallery) for name, e in self.registry.adapters.items()]

    @hookimpl
    def prejudge_probes(self) -> Iterable[Plugged]:
        """Return the catalogue's probes."""
        return [Plugged(name, e.target, e.summary, e.extra) for name, e in self.registry.probes.items()]

    @hookimpl
    def prejudge_metrics(self) -> Iterable[Plugged]:
        """Return the catalogue's metrics."""
        return [Plugged(name, e.target, e.summary, e.extra) for name, e in self.registry.metrics.items()]


class Registered(NamedTuple):
    """A registered class, and its plugin."""

    plugged: Plugged
    plugin: str


KINDS: dict[str, type | None] = {"adapter": ModelAdapter, "probe": Probe, "metric": Metric, "command": None}
HOOKS = {
    **{kind: f"prejudge_{kind}s" for kind in KINDS},
    "study": "prejudge_studies",
    "construct": "prejudge_constructs",
}
"""Hook by kind."""


class Offered(NamedTuple):
    """All that one plugin offers."""

    things: dict[str, list[Plugged]]
    studies: dict[str, StudyEntry]
    constructs: dict[str, Construct]


class Plugins:
    """All that plugins offer, by kind and name; `problems` lists the disabled plugins with the reason."""

    def __init__(
        self, registry: Registry, found: Iterable[EntryPoint] | None = None, kinds: Iterable[str] = tuple(HOOKS)
    ) -> None:
        """Collect what the plugins offer.

        Args:
            registry: its entries replace those of this package's plugins with the same name.
            found: the plugins; None: those of this package and the installed ones.
            kinds: the kinds to collect.
        """
        self.problems: list[str] = []
        self.loaded: list[str] = []
        self.offers: dict[str, dict[str, Registered]] = {kind: {} for kind in KINDS}
        self.studies: dict[str, StudyEntry] = {}
        self.constructs: dict[str, Construct] = {}
        self._owners: dict[tuple[str, str], str] = {}
        self._kinds = tuple(kinds)
        self._add(BUILT_IN, lambda: BuiltIns(registry))
        for entry in [*built_in_plugins(), *found_plugins()] if found is None else found:
            self._add(_label(entry), entry.load)

    def load(self, kind: str, name: str) -> Any:
        """Import and return the class (or command) registered under a name.

        Raises:
            UnknownNameError: nothing has that name.
            PluginError: it cannot be imported, or is not of this kind.
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
        if contract is not None and not hasattr(target, "options"):
            raise PluginError(
                plugin,
                f"{kind} {name!r} has no attribute 'options': the class of its settings.",
                code="plugin.contract",
            )
        return target

    def _add(self, plugin: str, load: Callable[[], Any]) -> None:
        """Add one plugin completely, or not at all."""
        try:
            offered = _ask(load(), plugin, self._kinds)
            if is_built_in(plugin):
                self._leave_out_overridden(offered)
            self._check_names(offered)
        except (Exception, SystemExit) as error:  # a plugin may raise anything; only it is disabled
            self.problems.append(f"plugin {plugin!r} is disabled: {type(error).__name__}: {error}")
            return
        self.loaded.append(plugin)
        for kind, things in offered.things.items():
            self.offers[kind].update({thing.name: Registered(thing, plugin) for thing in things})
        self.studies.update(offered.studies)
        self.constructs.update(offered.constructs)
        self._owners.update(dict.fromkeys(_files_of(offered), plugin))

    def _leave_out_overridden(self, offered: Offered) -> None:
        """Leave out built-in entries that the user's registry replaces."""
        for kind, things in offered.things.items():
            taken = {name for name, offer in self.offers[kind].items() if offer.plugin == BUILT_IN}
            things[:] = [thing for thing in things if thing.name not in taken]

    def _check_names(self, offered: Offered) -> None:
        owners = [
            (kind, thing.name, self._owner(kind, thing.name)) for kind, t in offered.things.items() for thing in t
        ]
        owners += [(kind, name, self._owners.get((kind, name))) for kind, name in _files_of(offered)]
        for kind, name, owner in owners:
            if owner is not None:
                raise ValueError(f"the plugin {owner!r} already has a {kind} named {name!r}")

    def _owner(self, kind: str, name: str) -> str | None:
        return self.offers[kind][name].plugin if name in self.offers[kind] else None


@contextmanager
def blamed(plugin: str, what: str) -> Iterator[None]:
    """Turn any exception of a plugin's code into a `PluginError` that names the plugin.

    The framework's own errors pass unchanged: a plugin may raise them for errors that the user can fix.
    """
    try:
        yield
    except PrejudgeError:
        raise
    except Exception as error:
        raise PluginError(
            plugin,
            f"{what} failed: {type(error).__name__}: {error}. --debug shows the traceback.",
            code="plugin.failed",
        ) from error


def built_in_plugins() -> list[EntryPoint]:
    """Return the plugins of this package: the folders that have a `plugin.py`. There is no list of them."""
    package = __package__.split(".")[0]
    return [
        EntryPoint(f"{BUILT_IN}:{folder.name}", f"{package}.{room}.{folder.name}.plugin", GROUP)
        for room in ROOMS
        for folder in sorted(files(package).joinpath(room).iterdir(), key=lambda folder: folder.name)
        if folder.joinpath("plugin.py").is_file()
    ]


def is_built_in(plugin: str) -> bool:
    """Return whether this is the label of a plugin of this package."""
    return plugin.partition(":")[0] == BUILT_IN and plugin != BUILT_IN


def found_plugins(environment: Mapping[str, str] = os.environ) -> list[EntryPoint]:
    """Return the installed entry points, by name; none if `PREJUDGE_PLUGINS` is `none`."""
    if environment.get("PREJUDGE_PLUGINS", "").lower() == "none":
        return []
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


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


def _ask(module: Any, plugin: str, kinds: Iterable[str]) -> Offered:
    """Return what one plugin offers. It has a manager of its own, so that pluggy checks only this plugin's hooks."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    manager.register(module, name=plugin)
    manager.check_pending()
    answers = {kind: [offer for many in getattr(manager.hook, HOOKS[kind])() for offer in many] for kind in kinds}
    studies = _read_files("study", read_study_file, answers.pop("study", ()))
    constructs = _read_files("construct", read_construct, answers.pop("construct", ()))
    for thing in (thing for things in answers.values() for thing in things):
        if not isinstance(thing, Plugged):
            raise TypeError(f"a hook returned {thing!r}; return prejudge.Plugged records")
    return Offered(answers, studies, constructs)


def _files_of(offered: Offered) -> list[tuple[str, str]]:
    """Return kind and name of what is offered as files."""
    return [*(("study", name) for name in offered.studies), *(("construct", name) for name in offered.constructs)]


def _read_files(kind: str, read: Callable[[StudyFile], tuple[str, T]], places: Iterable[StudyFile]) -> dict[str, T]:
    entries: dict[str, T] = {}
    for place in places:
        name, entry = read(place)
        if name in entries:
            raise ValueError(f"two {kind} files are named {name!r}")
        entries[name] = entry
    return entries


def _label(entry: EntryPoint) -> str:
    return f"{entry.dist.name}:{entry.name}" if entry.dist else entry.name
