"""Levels of thinking: how much a model reasons before it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from .errors import UsageError

Level = Literal["off", "minimal", "low", "medium", "high", "on"]
"""How much a model thinks before it answers; `on`: as much as it does by itself."""


def cannot_think(level: str, why: str, levels: Sequence[str]) -> UsageError:
    """Return the error of a level of thinking that a model cannot be told; `levels` are those that it can."""
    mend = f"It knows {', '.join(levels)}." if levels else "Vary another setting, or take another model."
    return UsageError(
        f"thinking = {level!r} cannot be set: {why}. {mend}", code="model.thinking", level=level, levels=tuple(levels)
    )


def ensure_level(level: Any) -> Level:
    """Return a level of thinking.

    Raises:
        UsageError: it is none.
    """
    if level not in get_args(Level):
        raise UsageError(
            f"thinking is {level!r}. It may be: {', '.join(get_args(Level))}.", code="options.choice", name="thinking"
        )
    return level  # type: ignore[no-any-return]


def settings_at(options: type[Any], level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a model that thinks this much, from those of its entry: `--vary thinking=off,high`.

    The options class of an adapter translates levels where it has `think(level, settings)`, a class method: the entry's
    `answer_room` stays; where it sets none, the level decides.

    Raises:
        UsageError: models of this adapter, or this model, have no such setting.
    """
    think: Callable[[Level, Mapping[str, Any]], Mapping[str, Any]] | None = getattr(options, "think", None)
    if think is None:
        raise cannot_think(level, "models of this adapter have no setting for it", ())
    return think(level, settings)
