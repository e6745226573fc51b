"""The console that commands print tables and sentences to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from .outlet import single_line, visible
from .screen import writable

WIDTH = 120
"""Characters per line without a terminal: enough for a table."""


class Outlet(Console):
    """A console that shows control characters as escapes, and takes no text for markup or emoji codes.

    A text that it is given is one line, or a cell of one; signs that its stream lacks are replaced before the layout.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **settings)

    def render_str(self, text: str, **how: Any) -> Text:
        """Make a text of words."""
        return super().render_str(writable(single_line(text), self.encoding), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the parts of whatever is printed; those that steer the terminal are the console's own."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(visible(part.text), part.style)


def terminal(*, stderr: bool = False) -> Console:
    """Return a console; without a terminal, its lines are long enough for a table."""
    console = Outlet(stderr=stderr)
    return console if console.is_terminal else Outlet(stderr=stderr, width=max(console.width, WIDTH))
