"""Options: parse user input into a plugin's typed, frozen record; errors suggest the most similar name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin

import msgspec

from .effects import EffectKind, OptionEffect, effects_of_values, hints_of
from .errors import DataError, UnknownNameError, UsageError
from .inputs import TooDeepError, load_toml
from .meanings import meant

S = TypeVar("S", bound=msgspec.Struct)
SHOWN = 200
"""Characters of a value that a message shows."""
_MISSING = re.compile(r"Object missing required field `(\w+)`")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every plugin's parameters: typed, frozen, and strict about unknown names.

    Example:
        >>> import prejudge
        >>> class EchoOptions(prejudge.Options, frozen=True, kw_only=True):
        ...     option_effects = prejudge.harmless("model")
        ...     model: str = "echo"
        >>> EchoOptions().model
        'echo'
    """

    aliases: ClassVar[Mapping[str, str]] = {}
    """Options by other names that people give them: an error on such a name suggests the option."""
    rereads: ClassVar[frozenset[str]] = frozenset()
    """Options of a probe that only change how answers are read: `prejudge score` may set them after a run."""
    worded: ClassVar[frozenset[str]] = frozenset()
    """Options of a probe that are texts of its material, such as the question to the model or the words of its answers:
    a folder of data may set them."""
    option_effects: ClassVar[Mapping[str, EffectKind]] = {}
    """What each option can do if somebody else sets it: `secret`, `address`, `file`, `code` or `none` (`harmless`).
    Those of base classes are added. A file that is not trusted may not set an option that is not declared; of probes
    and metrics, which have no effect but the files that they read, this holds for options that can be any text."""

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do; override it where values decide, such as a key that only one address gets.

        It is called before anything is trusted, and must neither import a large package nor ask anything. By default
        every secret counts as used and every address as asked, whatever the values are.
        """
        return list(effects_of_values(type(self), msgspec.structs.asdict(self)))


def build_options(
    owner: str, kind: type[S], values: Mapping[str, Any], *, strict: bool = False, noun: str = "option"
) -> S:
    """Return the options record of `owner` with these values; text is read as the type the option has, unless `strict`.

    Errors call a value an `option`, or what `noun` says.

    Raises:
        UnknownNameError: an option nobody declared.
        UsageError: a missing option, or a value of the wrong type.
    """
    known = kind.__struct_encode_fields__
    for name in values:
        if name not in known:
            raise UnknownNameError(f"{noun} of {owner}", name, known, meant=meant(name, kind))
    try:
        return msgspec.convert(values if strict else _split_lists(kind, values), kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _explain(f"{owner}: {noun}", kind, values, str(error)) from None


def choices_of(kind: type[msgspec.Struct]) -> dict[str, list[Any]]:
    """Return the values of each option that has a few: `Literal` and `bool`."""
    found: dict[str, list[Any]] = {}
    for name, hint in hints_of(kind).items():
        parts = [part for part in (hint, *get_args(hint)) if get_origin(part) is Literal]
        if choices := [choice for part in parts for choice in get_args(part)] or [False, True][: 2 * (hint is bool)]:
            found[name] = choices
    return found


def plainly(problem: msgspec.ValidationError) -> str:
    """Return the message of msgspec with the location first: `published 1: the key 'measure' is missing`."""
    what, _, place = str(problem).partition(" - at `$")
    place = re.sub(r"\[(\d+)\]", lambda number: f" {int(number[1]) + 1}", place.strip("`.").replace("[...]", ""))
    missing = _MISSING.fullmatch(what)
    what = f"the key {missing[1]!r} is missing" if missing else what
    return f"{place}: {what}." if place else f"{what}."


def _explain(owner: str, kind: type[msgspec.Struct], values: Mapping[str, Any], problem: str) -> UsageError:
    """Return the message: the option, its value, and the allowed values."""
    missing = _MISSING.fullmatch(problem)
    if missing:
        return UsageError(
            f"{owner} {missing[1]!r} is not set and has no default.", code="options.missing", name=missing[1]
        )
    place = re.search(r"`\$\.(\w+)", problem)
    if place is None or place[1] not in values:
        return UsageError(f"{owner}s: {problem}.", code="options.type")
    name, hint = place[1], hints_of(kind).get(place[1])
    choices = [choice for part in (hint, *get_args(hint)) if get_origin(part) is Literal for choice in get_args(part)]
    what = problem.partition(" - at")[0].replace(" | null`", "`")
    may = f"It may be: {', '.join(map(repr, choices))}." if choices else f"{what}."
    code = "options.choice" if choices else "options.type"
    return UsageError(f"{owner} {name!r} is {short(values[name])}. {may}", code=code, name=name, value=values[name])


def short(value: Any) -> str:
    """Return a value as an error names it: a long one in part."""
    shown = repr(value) if not isinstance(value, str) else repr(value[:SHOWN])
    return shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 3]}..."


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Read `name=value` texts; a value that is not valid TOML is a text.

    Raises:
        UsageError: a text without `=`, a name that is set twice, or a value that is nested too deeply.
    """
    values: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise UsageError(f"cannot read {text!r}. Write NAME=VALUE, such as per_cell=60.", code="options.assignment")
        if name in values:
            raise set_twice(name)
        values[name] = _toml_value(name, value)
    return values


def set_twice(name: str) -> UsageError:
    """Return the error of an option that is set twice: one of the two values would be ignored."""
    return UsageError(f"{name!r} is set more than once. Set it once.", code="options.duplicate", option=name)


def _toml_value(name: str, text: str) -> Any:
    try:
        return load_toml(f"value = {text}", f"the value of {name}")["value"]
    except TooDeepError as error:
        raise UsageError(str(error), code="options.nested", name=name) from None
    except DataError:
        return text


def _split_lists(kind: type[msgspec.Struct], values: Mapping[str, Any]) -> dict[str, Any]:
    """Read `axes=height,body shape` as a list if the option is one."""
    hints = hints_of(kind)

    def split(name: str, value: Any) -> Any:
        if get_origin(hints.get(name)) not in (tuple, list) or isinstance(value, list | tuple):
            return value
        return [part.strip() for part in value.split(",")] if isinstance(value, str) else [value]

    return {name: split(name, value) for name, value in values.items()}
