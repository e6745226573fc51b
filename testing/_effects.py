"""Rules on what options do: each declares its effect, and shows it when it is set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints
from unittest import SkipTest

import msgspec

from ..core.contracts import Options
from ..core.contracts.effects import EffectKind, effects_declared, undeclared_options
from ..core.contracts.errors import UsageError
from ..core.contracts.options import build_options
from ._kit import AdapterKit

ADDRESS = "http://kit.example/kit"


class EffectRules(AdapterKit):
    """A registry that is not trusted may set the options that these rules let through."""

    def test_every_option_declares_its_effect(self) -> None:
        """A secret, an address, a file, code, or none: an option that says nothing needs trust from everybody."""
        kind = self._options()
        undeclared = undeclared_options(kind)
        assert not undeclared, f"add to option_effects of {kind.__name__}: {', '.join(undeclared)}"
        for base in kind.__mro__:
            named = vars(base).get("option_effects", {})
            assert set(named) <= set(kind.__struct_fields__), f"option_effects of {base.__name__} names no option"
            assert set(named.values()) <= set(get_args(EffectKind)) - {"undeclared"}, f"no effect: {named}"

    def test_option_that_is_set_shows_its_effect(self) -> None:
        """Where `list_effects` is overridden, no option loses the effect that it declares."""
        kind = self._options()
        declared, hints = effects_declared(kind), get_type_hints(kind)
        needed = {f.name: _sample(hints[f.name], "none") for f in msgspec.structs.fields(kind) if f.required}
        for name, effect in declared.items():
            if effect == "none":
                continue
            shown = _effects(kind, needed | {name: _sample(hints[name], effect)})
            assert (name, effect) in shown, f"{name} is set, and list_effects() names no {effect} of it: {shown}"

    def _options(self) -> type[Options]:
        with self._standing() as make:
            kind = type(make()).options
        assert issubclass(kind, Options), f"{kind.__name__} is not a subclass of prejudge.Options"
        return kind


def _effects(kind: type[Options], values: Mapping[str, Any]) -> set[tuple[str, str]]:
    try:
        record = build_options("the kit", kind, values)
    except UsageError as error:
        raise SkipTest(f"the options refuse what the kit sets: {error}") from None
    return {(effect.option, effect.kind) for effect in record.list_effects() if not effect.unless}


def _sample(hint: Any, effect: EffectKind) -> Any:
    """Return a value of a type that has an effect."""
    for part in (hint, *get_args(hint)):
        origin = get_origin(part) or part
        if origin is Literal:
            return get_args(part)[0]
        if origin in (dict, Mapping):
            return {"kit": ADDRESS}
        if origin in (tuple, list):
            return ["kit"]
        if origin is bool:
            return True
        if origin in (int, float):
            return 1
        if origin is str:
            return ADDRESS if effect == "address" else "kit"
    return "kit"
