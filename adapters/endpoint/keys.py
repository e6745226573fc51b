"""Where an endpoint is, and the key that belongs there. A key is never shown, and never in an identity."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ...core.contracts.adapter import Identity
from ...core.contracts.errors import UsageError
from ...core.contracts.inputs import file_bytes
from ...core.contracts.secrets import is_random, key_pattern, looks_secret, secret_name, secret_place
from .options import EndpointOptions


class Home(NamedTuple):
    """The provider that a dialect comes from."""

    adapter: str
    """Name of the adapter."""
    vendor: str
    url: str
    """The provider's own address, where its key may go."""
    url_env: str
    """Variable that names another address."""
    key_env: str
    """Variable that holds the provider's key."""
    extra: str = "endpoint"
    """Extra that installs what the adapter needs."""
    fixed: frozenset[str] = frozenset()
    """Fields of a body that `extra_body` may not set: they belong to the request."""


def check_extra(extra: dict[str, Any], fixed: frozenset[str]) -> None:
    """Refuse further fields of a body that belong to the request, or that look like secrets.

    Raises:
        UsageError: which, and how to mend it.
    """
    if taken := sorted(fixed & extra.keys()):
        raise UsageError(
            f"extra_body may not set {', '.join(taken)}: they belong to each request.", code="options.reserved"
        )
    if (name := secret_name(extra)) is not None:
        raise UsageError(
            f"extra_body may not set {name}: it is stored with the answers. See api_key_env.",
            code="options.secret",
        )
    if place := secret_place(extra) or next(
        (name for name, value in extra.items() if isinstance(value, str) and is_random(value)), None
    ):
        raise UsageError(
            f"{place} of extra_body looks like a secret, and extra_body is stored with the answers. Put the secret "
            "into an environment variable, and name that with api_key_env.",
            code="options.secret",
        )


def find_address(options: EndpointOptions, home: Home) -> str:
    """Return the base url without a closing slash.

    Raises:
        UsageError: it is not an http(s) address, or it contains a user, a query or a fragment; it is then not shown.
    """
    url = (options.base_url or os.environ.get(home.url_env) or home.url).strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port_is_sound = parts.port is None or parts.port > 0
    except ValueError:
        raise UsageError(f"base_url is not an address; write it like {home.url}.", code="options.address") from None
    if parts.username is not None or parts.password is not None or "?" in url or "#" in url:
        raise UsageError(
            "base_url must not contain a user, a password or a query; put the key into the environment.",
            code="options.address",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_sound:
        raise UsageError(f"base_url {url!r} is not an address; write it like {home.url}.", code="options.address")
    if options.endpoint is None and looks_secret(url):
        raise UsageError(
            f"the path of base_url at {parts.hostname} looks like it has a secret, and the address is stored with the "
            "answers. Set endpoint = 'NAME', which is stored in its place; base_url itself can come from the "
            f"environment variable {home.url_env}.",
            code="options.secret",
        )
    return url


def find_key(options: EndpointOptions, address: str, home: Home) -> str | None:
    """Return the key, or None for a server that wants none.

    The provider's own variable goes to the provider and to the address that the environment names for it only; for any
    other address the settings must name the variable.

    Raises:
        UsageError: there is no key at the configured place, or it belongs to another address; the message names the
            place and never shows a key.
    """
    if options.api_key_file is not None:
        return _checked(_read_key(options.api_key_file), f"the file {options.api_key_file!r}")
    name = options.api_key_env
    if name is None:
        name = home.key_env
        if not is_home(address, home):
            raise UsageError(
                f"{name} is not sent to {urlsplit(address).netloc}: it belongs to {home.vendor} and to {home.url_env}. "
                "Set api_key_env to the NAME of this server's own variable, or to '' for a server without keys.",
                code="endpoint.key-host",
            )
    if not name:
        return None
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise UsageError(
            "api_key_env must be the NAME of an environment variable, never the key itself.", code="options.secret"
        )
    key = os.environ.get(name, "").strip()
    if not key and (file := os.environ.get(f"{name}_FILE", "").strip()):
        return _checked(_read_key(file), f"the file that {name}_FILE names")
    if not key:
        raise UsageError(
            f"the environment variable {name} is not set. Set it to the key, name another with api_key_env, "
            "or set api_key_env = '' for a server that wants none.",
            code="endpoint.key-missing",
        )
    return _checked(key, f"the environment variable {name}")


def is_home(address: str, home: Home) -> bool:
    """Return whether an address is the provider's own, or the one that the environment names for it."""
    return _origin(address) in map(_origin, (home.url, os.environ.get(home.url_env, "")))


def _origin(address: str) -> tuple[str, str]:
    """Return scheme, host and port of an address."""
    parts = urlsplit(address.strip())
    return parts.scheme.lower(), parts.netloc.lower()


def _read_key(name: str) -> str:
    try:
        return file_bytes(Path(name).expanduser(), 1 << 16).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "not text"
        raise UsageError(
            f"the file of the key, {name!r}, cannot be read: {problem}.", code="endpoint.key-missing"
        ) from None


def _checked(key: str, place: str) -> str:
    if not key:
        raise UsageError(f"{place} is empty; it should hold the key.", code="endpoint.key-missing")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError(
            f"{place} does not hold a key: it has blanks, line breaks or special characters.",
            code="endpoint.key-unusable",
        )
    return key


def ensure_no_key(identity: Identity, key: str | None) -> None:
    """Refuse settings that hold the key, because an identity is stored with the answers; the key is not shown.

    Raises:
        UsageError: the key stands in one of them. A placeholder, such as `local`, may: it is a word.
    """
    if key is None or (pattern := key_pattern(key)) is None:
        return
    if any(re.search(pattern, str(value)) for value in (identity.model, *identity.settings.values())):
        raise UsageError(
            "a setting holds the key itself. Put it into an environment variable; see api_key_env.",
            code="options.secret",
        )
