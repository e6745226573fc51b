"""The console that commands print to."""

from __future__ import annotations

from rich.console import Console

WIDTH = 120
"""Characters per line without a terminal: enough for a table."""


def terminal() -> Console:
    """Return a console; without a terminal, its lines are long enough for a table."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, WIDTH))
