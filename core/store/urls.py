"""Where a store is: a path or a SQLAlchemy url, and how a url is shown to a person."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from ..contracts.errors import StoreError

DEFAULT = "prejudge.db"
"""The store that a command takes where none is named."""


def store_url(where: str | Path) -> sa.URL:
    """Return the SQLAlchemy url of a path or url.

    Raises:
        StoreError: the url cannot be understood.
    """
    text = str(where)
    if not text.strip():
        raise StoreError("the store has no name. Name a file with --store.", code="store.url")
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        # Not the text itself: a password may stand in it.
        kind = text.partition("://")[0]
        raise StoreError(
            f"cannot read the store's url {kind}://... Give a file path or a SQLAlchemy url.", code="store.url"
        ) from None
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise StoreError(
            f"the store {text} would be in memory and lost at the end of the command. Name a file with --store.",
            code="store.in-memory",
        )
    return url


def hide_password(text: str) -> str:
    """Return a text, such as a command that was typed, without the passwords of the urls in it."""
    text = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", text)
    return re.sub(r"(?<=[?&])(\w*password)=[^&\s'\"]*", r"\1=***", text)


def option_words(where: str | sa.URL) -> str:
    """Return what a command shown to the user needs to find this store again; nothing for the usual one."""
    url = store_url(where) if isinstance(where, str) else where
    # Where a path says all that the url does, the path is shown.
    plain = url == sa.URL.create("sqlite", database=url.database)
    text = str(url.database) if plain else show(url)
    return "" if text == DEFAULT else f" --store {shlex.quote(text)}"


def show(url: sa.URL) -> str:
    """Return a url as a person may see it."""
    return hide_password(url.render_as_string())
