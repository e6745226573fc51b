"""How much a model thinks: one word, `off` to `high`, as the settings of an adapter (`settings_at`).

Endpoints take a word of effort or a budget of tokens; local models take arguments of their chat template. A level that
a model cannot be told is refused: two levels that ask the same would be compared with each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.thinking import Level, cannot_think

ROOM: Mapping[str, int] = MappingProxyType(
    {"off": 0, "minimal": 1_024, "low": 4_096, "medium": 16_384, "on": 16_384, "high": 32_768}
)
"""Tokens for reasoning, added to the limit of an answer. Budgets that vendors recommend begin at about a thousand and
end at a few ten thousand; what is not used costs nothing."""
SWITCH, EFFORT, ARGUMENTS = "enable_thinking", "reasoning_effort", "chat_template_kwargs"
"""Arguments of chat templates: of Qwen3 and its kin on or off, of gpt-oss a level."""
SWITCHED, LEVELS = ("off", "on"), ("low", "medium", "high")


def with_room(settings: Mapping[str, Any], level: Level) -> dict[str, Any]:
    """Return settings with room for reasoning; the entry's own stays."""
    return {**settings, "answer_room": settings.get("answer_room") or ROOM[level]}


def by_effort(settings: Mapping[str, Any], level: Level, **words: str) -> dict[str, Any]:
    """Return settings with a word of effort; `words` are those of levels that the endpoint calls otherwise."""
    return with_room({**settings, "effort": words.get(level, level)}, level)


def by_budget(settings: Mapping[str, Any], level: Level, tokens: int) -> dict[str, Any]:
    """Return settings with a budget of tokens; the entry's own room grows to hold it."""
    room = max(settings.get("answer_room") or 0, ROOM[level])
    return {**settings, "thinking_tokens": tokens, "answer_room": room}


def by_known_effort(settings: Mapping[str, Any], level: Level, *, least: str = "low") -> dict[str, Any]:
    """Return settings with a word of effort of a model that thinks in any case, from the least level on.

    `on` is what the model does by itself: no word is sent.

    Raises:
        UsageError: a level below.
    """
    if level == "on":
        return with_room({**settings, "effort": None}, level)
    known = (*(("minimal",) if least == "minimal" else ()), *LEVELS)
    if level not in known:
        raise cannot_think(level, "the model thinks in any case, and takes an effort", (*known, "on"))
    return by_effort(settings, level)


def by_template(settings: Mapping[str, Any], level: Level, template: str | None) -> dict[str, Any]:
    """Return settings with the argument that a chat template takes.

    `template` is its text, or None where it is not known before the model is there: loading then refuses an argument
    that the template does not name.

    Raises:
        UsageError: the template knows neither an argument for thinking nor this level.
    """
    argument = _argument(level, template)
    if argument is None:
        known = (*(SWITCHED if SWITCH in (template or "") else ()), *(LEVELS if EFFORT in (template or "") else ()))
        raise cannot_think(level, f"the model's chat template has no such level ({SWITCH}, {EFFORT})", known)
    return with_room({**settings, ARGUMENTS: {**(settings.get(ARGUMENTS) or {}), **argument}}, level)


def _argument(level: Level, template: str | None) -> dict[str, Any] | None:
    if level in SWITCHED and (template is None or SWITCH in template):
        return {SWITCH: level == "on"}
    if level in LEVELS and (template is None or EFFORT in template):
        return {EFFORT: level}
    return None


def by_body(settings: Mapping[str, Any], level: Level) -> dict[str, Any] | None:
    """Return settings with the switch that `extra_body` has, such as that of Qwen3 behind vLLM; None if it has none.

    Raises:
        UsageError: a level that a switch does not have.
    """
    body = settings.get("extra_body") or {}
    arguments = body.get(ARGUMENTS)
    if not isinstance(arguments, Mapping) or SWITCH not in arguments:
        return None
    if level not in SWITCHED:
        raise cannot_think(level, f"the model's entry has a switch ({SWITCH})", SWITCHED)
    switched = {**body, ARGUMENTS: {**arguments, SWITCH: level == "on"}}
    return with_room({**settings, "extra_body": switched}, level)


def check_arguments(arguments: Mapping[str, Any], template: str | None, model: str) -> None:
    """Refuse arguments of thinking that a chat template would ignore.

    Raises:
        ModelLoadError: the template does not name one of them.
    """
    for name in (SWITCH, EFFORT):
        if name in arguments and name not in (template or ""):
            raise ModelLoadError(
                f"the chat template of {model!r} does not know {name!r}, so thinking cannot be set by it.",
                code="model.template",
            )
