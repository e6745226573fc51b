"""The log of the package, shown by `-v` on standard error, without API keys and passwords."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from ..contracts.secrets import SECRET_NAMES
from ..store.urls import hide_password
from .outlet import echo, single_line, traceback_lines

LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
LOGGER = "prejudge"
LEAST = 6
"""Characters of a secret; a shorter value of such a variable is a word like any other."""


class Echo(logging.Handler):
    """Write to what standard error is at that moment: bars of a run take its place for a while."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, and those of a traceback."""
        echo(*self.format(record).split("\n"), err=True)


class Discreet(logging.Formatter):
    """A line of the log, with secrets of the environment and passwords of urls hidden."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return hide_secrets(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without the traceback: what a server said in it forges no other line."""
        return single_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Return the traceback."""
        return "\n".join(map(single_line, traceback_lines(*ei)))


def hide_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a text without passwords, and without the values of variables such as `OPENAI_API_KEY`."""
    secrets = {value for name, value in environment.items() if SECRET_NAMES.search(name) and len(value) >= LEAST}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return hide_password(text)


def speak(verbosity: int) -> None:
    """Show the log from a level on: 1 what is read, retried and held back; 2 what is loaded, too. 0 shows nothing."""
    logger = logging.getLogger(LOGGER)
    for handler in [handler for handler in logger.handlers if isinstance(handler, Echo)]:
        logger.removeHandler(handler)
    if verbosity:
        handler = Echo()
        handler.setFormatter(Discreet("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
        logger.addHandler(handler)
    logger.setLevel(LEVELS[min(verbosity, len(LEVELS) - 1)])
