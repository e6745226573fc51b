"""Variants of a model: its name with settings behind it, `qwen[thinking=low]`, which are set over those of its entry.

So a run over variants is a run of a model like any other: its manifest names the variant, and it is resumed, scored and
compared by that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from ..contracts.errors import UsageError
from ..contracts.options import parse_assignments

THINKING = "thinking"
"""The setting that each adapter translates (`settings_at`)."""
MOST = 20
"""Variants of one command."""
_PAIRS = {"[": "]", "{": "}", "(": ")"}


def split_name(name: str) -> tuple[str, str]:
    """Return the name of a model and the text of its own settings; that is empty if there are none."""
    start = name.find("[")
    if start <= 0 or not name.endswith("]") or "=" not in name[start:]:
        return name, ""
    return name[:start], name[start + 1 : -1]


def settings_in(text: str) -> dict[str, Any]:
    """Return the settings of a variant.

    Raises:
        UsageError: they are not of the form NAME=VALUE, or one is set twice.
    """
    return parse_assignments(split_list(text))


def split_list(text: str) -> list[str]:
    """Split at commas that are outside of quotes, lists and tables."""
    parts, begun, closing, quote = [], 0, [], ""
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in _PAIRS:
            closing.append(_PAIRS[sign])
        elif closing and sign == closing[-1]:
            closing.pop()
        elif sign == "," and not closing:
            parts.append(text[begun:place].strip())
            begun = place + 1
    return [*parts, text[begun:].strip()]


def variant(name: str, settings: Mapping[str, str]) -> str:
    """Return the name of a model with settings, as they are written; later ones replace those that it has."""
    base, brackets = split_name(name)
    before = dict(part.partition("=")[::2] for part in split_list(brackets)) if brackets else {}
    inside = ",".join(f"{key}={value}" for key, value in {**before, **settings}.items())
    return f"{base}[{inside}]"


def variants(name: str, varied: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of a model's variants: every combination of the values, the first setting slowest.

    Raises:
        UsageError: a setting has fewer than two values or one twice, or there are too many combinations.
    """
    for setting, values in varied.items():
        if len(values) < 2 or "" in values:
            raise UsageError(
                f"--vary {setting} has the value {', '.join(values)!r} alone. Give two or more, such as "
                f"--vary {THINKING}=off,low,high.",
                code="vary.values",
            )
        if len(set(values)) < len(values):
            raise UsageError(f"--vary {setting} has a value twice: {', '.join(values)}.", code="options.duplicate")
    names = [variant(name, dict(zip(varied, chosen, strict=True))) for chosen in product(*varied.values())]
    if len(names) > MOST:
        raise UsageError(f"--vary makes {len(names)} variants; at most {MOST} are compared.", code="vary.values")
    return names


def read_varied(texts: Sequence[str]) -> dict[str, list[str]]:
    """Read `SETTING=a,b,c` texts.

    Raises:
        UsageError: a text of another form, or a setting that is named twice.
    """
    varied: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise UsageError(
                f"cannot read --vary {text!r}. Write SETTING=VALUE,VALUE, such as {THINKING}=off,low,high.",
                code="options.assignment",
            )
        if name.strip() in varied:
            raise UsageError(f"--vary names {name.strip()!r} twice.", code="options.duplicate")
        varied[name.strip()] = split_list(values)
    return varied


def written(value: Any) -> str:
    """Return a value as `--vary` writes it: a text as it is, any other as JSON, which TOML reads alike but for null."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
