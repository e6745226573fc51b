"""The six hooks of a plugin, each of which only registers, and the record that most of them return.

The built-in studies use the same hooks: each folder `probes/<study>/` has a `plugin.py` that names its probes,
metrics, studies and commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

import msgspec
import pluggy

GROUP = "prejudge"
"""Group of the entry points, and prefix of every hook's name."""
StudyFile = str | Path | Traversable
"""A file of a study or of a construct: its path, a resource of a package, or `package:NAME/PATH`."""
hookspec = pluggy.HookspecMarker(GROUP)
F = TypeVar("F", bound=Callable[..., object])


def hookimpl(function: F) -> F:
    """Mark a function of a plugin as one of its hooks.

    Args:
        function: a function without arguments that is named as a hook: `prejudge_adapters`, `prejudge_probes`,
            `prejudge_metrics`, `prejudge_studies`, `prejudge_constructs` or `prejudge_commands`.

    Returns:
        The function.

    Example:
        >>> import prejudge
        >>> @prejudge.hookimpl
        ... def prejudge_probes():
        ...     return [prejudge.Plugged("my-probe", "my_bias.probe:MyProbe", "What it asks, in one line.")]
        >>> prejudge_probes()[0].target
        'my_bias.probe:MyProbe'
    """
    return pluggy.HookimplMarker(GROUP)(function)


class Plugged(msgspec.Struct, frozen=True):
    """An offered class, or its `module:attribute`, which is imported on first use.

    Example:
        >>> import prejudge
        >>> prejudge.Plugged("my-probe", "my_bias.probe:MyProbe", "What it asks, in one line.").name
        'my-probe'
    """

    name: str
    target: str | type
    summary: str = ""
    extra: str = ""
    gallery: StudyFile = ""
    """Of an adapter: a TOML file of fair models that it plays when a study is calibrated."""


class Hooks:
    """The hooks."""

    @hookspec
    def prejudge_adapters(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the model adapters of the plugin."""

    @hookspec
    def prejudge_probes(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the probes of the plugin."""

    @hookspec
    def prejudge_metrics(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the metrics of the plugin."""

    @hookspec
    def prejudge_studies(self) -> Iterable[StudyFile]:  # type: ignore[empty-body]
        """Return the study files of the plugin."""

    @hookspec
    def prejudge_constructs(self) -> Iterable[StudyFile]:  # type: ignore[empty-body]
        """Return the construct files of the plugin."""

    @hookspec
    def prejudge_commands(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the click commands that the plugin adds to the command line."""
