"""What looks like a secret, for the whole package: what must not be stored with the answers, and not be shown.

To refuse a setting takes a sure sign (`looks_secret`, `secret_name`); to hide a part of an error takes less (`hide`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

LEAST = 16
"""Length from which the value of a variable such as `HF_TOKEN` is looked for; a shorter one may be a word."""
SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)S?$", re.I)
"""Environment variables that hold secrets."""
HIDDEN = "[hidden]"
_FIELD = re.compile(
    r"(?:x-)?api[-_ ]?key|(?:proxy-)?authorization|password|passwd|credentials?|private[-_ ]?key"
    r"|(?:client[-_ ]?)?secret|(?:(?:x-)?(?:access|api|auth|bearer|id|refresh)[-_ ]?)?token",
    re.I,
)
"""Names of fields that hold secrets."""
_FORMATS = re.compile(
    r"\b(?:sk|rk|pk)[-_](?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{16,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{30,}|\b(?:hf|gsk|r8)_[A-Za-z0-9]{30,}"
    r"|\b(?:xai|pplx|nvapi)-[A-Za-z0-9_-]{30,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/-]{16,}"
)
_IN_ERRORS = re.compile(
    r"(?i:(\b(?:authorization|(?:x-)?api[-_]?key|password|passwd|client[-_]?secret|(?:access|refresh)[-_]?token)\b"
    r"[\"']?\s*[:=]\s*[\"']?)(?:bearer\s+|basic\s+)?[^\s\"',;}]+|(\bbearer\s+)[^\s\"',;}]+"
    r"|(\b[a-z][a-z0-9+.-]*://)[^\s/@\"']+(?=@)|\bsk-[a-z0-9*_-]{6,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*|" + _FORMATS.pattern
)
"""What follows such a name or `bearer`, the user of an address, a key that is shortened with stars, and whole keys."""
_URL = re.compile(r"[a-z][a-z0-9+.-]*://([^/\s\"'\\]+)(/[^\s\"'\\?#]*)", re.I)
_RANDOM = re.compile(r"[A-Za-z0-9_+=]{20,}")
_HEX = re.compile(r"(?i)[0-9a-f]{32,}")
_COLLECTIONS = frozenset(
    "account accounts deployment deployments endpoint endpoints model models organization organizations orgs project "
    "projects resource resources subscription subscriptions tenant tenants workspace workspaces".split()
)
"""Parts of a path after which stands the number of a thing, which is public, though it may have 32 figures."""
_NUMBERED_HOSTS = ("gateway.ai.cloudflare.com",)
"""Hosts whose paths begin with the number of an account."""


def looks_secret(text: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a text holds what looks like a secret.

    That is the form of a known provider's keys, a random part of an address's path, or the value of a variable of the
    environment whose name ends in KEY, TOKEN, SECRET or PASSWORD. A part of 32 hexadecimal figures or more is random,
    unless the part before says what it numbers, as in `/accounts/...`.
    """
    return (
        _FORMATS.search(text) is not None
        or _FORMATS.search(unquote(text)) is not None
        or any(_has_random_part(host, unquote(path).split("/")) for host, path in _URL.findall(text))
        or any(
            len(value) >= LEAST and value in text for name, value in environment.items() if SECRET_NAMES.search(name)
        )
    )


def secret_place(settings: Any, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the name of the first of some nested settings that looks like a secret; None if none does."""
    return next((place for place, text in _texts(settings, "") if looks_secret(text, environment)), None)


def secret_name(settings: Any) -> str | None:
    """Return the first name in some nested settings that is one of a secret, such as `api_key`; None if none is."""
    if isinstance(settings, Mapping):
        found = (str(name) if _FIELD.fullmatch(str(name)) else secret_name(inner) for name, inner in settings.items())
    elif isinstance(settings, list | tuple):
        found = (secret_name(inner) for inner in settings)
    else:
        return None
    return next((name for name in found if name is not None), None)


def key_pattern(key: str) -> str | None:
    """Return a regular expression that finds a key in a text; None for a placeholder, such as `local` or `test`.

    A key of fewer characters than `LEAST` may be a part of a word, so that it counts only between other characters
    than letters and figures; one of few letters alone is a word.
    """
    if len(key) >= LEAST:
        return re.escape(key)
    return None if not key or key.isalpha() else rf"(?<![A-Za-z0-9]){re.escape(key)}(?![A-Za-z0-9])"


def hide(text: str) -> str:
    """Return a text of another program with `HIDDEN` in the place of what may be a secret."""
    return _IN_ERRORS.sub(lambda found: f"{found[1] or found[2] or found[3] or ''}{HIDDEN}", text)


def is_random(text: str) -> bool:
    """Return whether a text is a long mixture of letters and digits, as keys are, or holds one."""
    return any(_is_random(part) for part in re.split(r"[\s/]", text))


def _has_random_part(host: str, parts: list[str]) -> bool:
    """Return whether a part of a path is random, and not the number of a thing that the part before names."""
    numbered = {part for before, part in pairwise(parts) if _HEX.fullmatch(part) and _numbers(host, before)}
    return any(_is_random(part) for part in parts if part not in numbered)


def _numbers(host: str, part: str) -> bool:
    return part.lower() in _COLLECTIONS or (part == "v1" and host.lower() in _NUMBERED_HOSTS)


def _is_random(part: str) -> bool:
    """Names of models and UUIDs have hyphens and dots between short parts; digests of 32 figures and more count."""
    return _HEX.search(part) is not None or any(
        len(re.findall("[0-9]", run)) >= 3 and re.search("[A-Z]", run) and re.search("[a-z]", run)
        for run in _RANDOM.findall(part)
    )


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, place or str(name))
            yield place or str(name), str(name)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, place)
