"""What looks like a secret. It is looked for where a text would be stored with the answers, and is never shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

LEAST = 16
"""Length from which the value of a variable such as `HF_TOKEN` is looked for; a shorter one may be a word."""
SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)S?$", re.I)
"""Environment variables that hold secrets."""
_FORMATS = re.compile(
    r"\b(?:sk|rk|pk)[-_](?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{16,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{30,}|\b(?:hf|gsk|r8)_[A-Za-z0-9]{30,}"
    r"|\b(?:xai|pplx|nvapi)-[A-Za-z0-9_-]{30,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/-]{16,}"
)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s\"'\\]+(/[^\s\"'\\?#]*)", re.I)
_RANDOM = re.compile(r"[A-Za-z0-9_+=]{20,}")
_HEX = re.compile(r"(?i)[0-9a-f]{32,}")


def looks_secret(text: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a text holds what looks like a secret.

    That is the form of a known provider's keys, a random part of an address's path, or the value of a variable of the
    environment whose name ends in KEY, TOKEN, SECRET or PASSWORD.
    """
    return (
        _FORMATS.search(text) is not None
        or _FORMATS.search(unquote(text)) is not None
        or any(_is_random(part) for path in _URL.findall(text) for part in unquote(path).split("/"))
        or any(
            len(value) >= LEAST and value in text for name, value in environment.items() if SECRET_NAMES.search(name)
        )
    )


def secret_place(settings: Any, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the name of the first of some nested settings that looks like a secret; None if none does."""
    return next((place for place, text in _texts(settings, "") if looks_secret(text, environment)), None)


def is_random(text: str) -> bool:
    """Return whether a text is a long mixture of letters and digits, as keys are, or holds one."""
    return any(_is_random(part) for part in re.split(r"[\s/]", text))


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
