"""What options can do when somebody else sets them: use a secret, ask an address, read a file, run code.

Whoever copies a folder runs settings that a stranger wrote. Each option therefore declares its effect
(`Options.option_effects`), and `Options.list_effects` says what a record of values does, where the values decide. Both
are evaluated without the backend, so that trust is decided before anything is loaded or asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

EffectKind = Literal["secret", "address", "file", "code", "none", "undeclared"]
"""What an option can do: name or choose a secret, name an address, name a file or folder, let code run, or none."""


class OptionEffect(msgspec.Struct, frozen=True):
    """Something that a model or study does beyond computing.

    Example:
        >>> import prejudge
        >>> prejudge.OptionEffect("address", "url", "http://127.0.0.1:8000").sentence
        "asks the address 'http://127.0.0.1:8000' (url)"
    """

    kind: EffectKind
    option: str
    value: str = ""
    """The address, the path, or the name of the secret or code; empty: a default."""
    says: str = ""
    """What happens, as the end of a sentence; empty: what the kind says of any option."""
    unless: str = ""
    """Why it does not happen, such as an option that is not set; empty: it happens."""

    @property
    def sentence(self) -> str:
        """Return what happens, as the end of a sentence."""
        shown = f"{self.option} = {self.value!r}" if self.value else self.option
        by_kind = {
            "secret": f"uses a secret ({shown})",
            "address": f"asks the address {self.value!r} ({self.option})" if self.value else "asks its default address",
            "file": f"reads the file or folder {self.value!r} ({self.option})",
            "code": f"lets code run ({shown})",
            "undeclared": f"has the option {self.option!r}, whose effect its package does not declare",
        }
        return self.says or by_kind[self.kind]


def harmless(names: str) -> dict[str, EffectKind]:
    """Declare that options have no effect: no value of them uses a secret, an address, a file or code.

    Args:
        names: the options, separated by blanks.

    Returns:
        The effect `none` by option, for `Options.option_effects`.

    Example:
        >>> import prejudge
        >>> prejudge.harmless("model temperature")
        {'model': 'none', 'temperature': 'none'}
    """
    return dict.fromkeys(names.split(), "none")


def effects_declared(kind: type[msgspec.Struct]) -> dict[str, EffectKind]:
    """Return the effect of each option that is declared, those of base classes included."""
    declared: dict[str, EffectKind] = {}
    for base in reversed(kind.__mro__):
        declared |= vars(base).get("option_effects", {})
    return {name: effect for name, effect in declared.items() if name in kind.__struct_fields__}


def undeclared_options(kind: type[msgspec.Struct]) -> list[str]:
    """Return the options whose effect is not declared."""
    declared = effects_declared(kind)
    return [name for name in kind.__struct_fields__ if name not in declared]


def effects_of_values(kind: type[msgspec.Struct], values: Mapping[str, Any]) -> Iterator[OptionEffect]:
    """Yield the effects of values by the declarations alone, the worst that they can mean.

    A secret may be used, and an address asked, whatever the value is: what an empty one stands for, only the adapter
    knows.
    """
    declared = effects_declared(kind)
    for name, value in values.items():
        effect = declared.get(name)
        if effect is None:
            yield OptionEffect("undeclared", name)
        elif effect == "file":
            yield from (OptionEffect("file", name, text) for text in texts_in(value) if text)
        elif effect in ("secret", "address") or (effect == "code" and value):
            yield OptionEffect(effect, name, "" if value is None else str(value))


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in nested values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(part)


@cache
def hints_of(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the types of a record's fields; they are evaluated once, each time costs more than the record."""
    return MappingProxyType(get_type_hints(kind))


def text_options(kind: type[msgspec.Struct]) -> list[str]:
    """Return the options that can be any text, and so can name a file."""
    hints = hints_of(kind)
    return [name for name in kind.__struct_fields__ if _is_text(hints[name])]


def _is_text(hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return False
    return hint in (str, Any) or any(map(_is_text, get_args(hint)))
