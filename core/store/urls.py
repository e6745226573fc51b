"""Path or SQLAlchemy URL of a store, and how a URL is shown without passwords."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from ..contracts.errors import StoreError

DEFAULT = "prejudge.db"
"""The default store."""


def store_url(where: str | Path) -> sa.URL:
    """Return the SQLAlchemy URL of a path or URL.

    Raises:
        StoreError: the URL cannot be parsed.
    """
    text = str(where)
    if not text.strip():
        raise StoreError("the store has no name. Name a file with --store.", code="store.url")
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        # Not the text itself: it may contain a password.
        kind = text.partition("://")[0]
        raise StoreError(
            f"cannot read the store's URL {kind}://... Give a file path or a SQLAlchemy URL.", code="store.url"
        ) from None
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise StoreError(
            f"the store {text} would be in memory and lost at the end of the command. Name a file with --store.",
            code="store.in-memory",
        )
    return url


def hide_password(text: str) -> str:
    """Return a text, such as a command line, without the passwords of the URLs in it."""
    text = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", text)
    return re.sub(r"(?<=[?&])(\w*password)=[^&\s'\"]*", r"\1=***", text)


def option_words(where: str | sa.URL) -> str:
    """Return the option with which a command shown to the user finds this store; empty for the default store."""
    url = store_url(where) if isinstance(where, str) else where
    # The path is shown if it is equivalent to the URL.
    plain = url == sa.URL.create("sqlite", database=url.database)
    text = str(url.database) if plain else show(url)
    return "" if text == DEFAULT else f" --store {shlex.quote(text)}"


def show(url: sa.URL) -> str:
    """Return a URL without passwords."""
    return hide_password(url.render_as_string())
