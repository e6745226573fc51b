"""What a plugin offers: the five hooks, each of which only registers, and the record that most of them return.

The package's own studies come in through the same hooks as a stranger's: a folder `probes/<study>/` has a `plugin.py`
that names its probes, metrics, studies and commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec
import pluggy

GROUP = "prejudge"
"""Of the entry points, and the beginning of every hook's name."""
StudyFile = str | Path | Traversable
"""A study file: its path, a resource of a package, or `package:NAME/PATH`."""
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
    def prejudge_studies(self) -> Iterable[StudyFile]:  # type: ignore[empty-body]
        """Return the study files you bring."""

    @hookspec
    def prejudge_commands(self) -> Iterable[Plugged]:  # type: ignore[empty-body]
        """Return the click commands you add to the command line."""
