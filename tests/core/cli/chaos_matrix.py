"""The complete matrix of `make soak`: every behaviour, at every third call and for ever, over each transport.

Prints one row per behaviour, as a table in Markdown, and exits with 1 if a rule is broken.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prejudge.testing import BEHAVIOURS, ChaosServer

from .chaos_runs import TRIALS, Lab, answer_option, heal, write_registry
from .processes import Commands

CELLS = {"lean, every third": ("lean", 3), "lean, for ever": ("lean", 1), "httpx, for ever": ("httpx", 1)}
"""By head of a column: the transport, and every how many calls."""


class Cell(NamedTuple):
    """What one behaviour does to one run."""

    code: int
    calls: int
    kept: int
    seconds: float
    broken: list[str]

    def __str__(self) -> str:
        return f"{self.code}, {self.calls}, {self.kept}, {self.seconds:.0f}{' BROKEN' if self.broken else ''}"


def measure(lab: Lab, name: str, every: int) -> Cell:
    """Run, resume and verify with one behaviour."""
    lab.server.clear()
    lab.server.model = answer_option
    lab.server.play(name, every=every)
    done = lab.run()
    calls, kept = len(lab.server.seen), len(lab.kept())
    broken = lab.broken_rules()
    try:
        heal(lab)
    except AssertionError as error:
        broken.append(f"not mended by resume: {error}")
    if len(lab.kept()) != TRIALS:
        broken.append(f"{len(lab.kept())} of {TRIALS} answers at the end")
    return Cell(done.code, calls, kept, done.seconds, [*broken, *lab.broken_rules()])


def rows(names: list[str]) -> Iterator[tuple[str, list[Cell]]]:
    """Yield the cells of each behaviour, by transport and schedule."""
    with tempfile.TemporaryDirectory() as place, ChaosServer(answer_option) as server:
        with Commands(Path(place) / "said") as commands:
            for name in names:
                cells = []
                for transport, every in CELLS.values():
                    folder = Path(tempfile.mkdtemp(dir=place))
                    write_registry(folder, server.url, transport=transport)
                    cells.append(measure(Lab(folder, server, commands), name, every))
                yield name, cells


def main(names: list[str]) -> int:
    """Print the table; return the exit code."""
    print(f"Each cell: exit code, calls, answers kept before the resume (of {TRIALS}), seconds.\n")
    print(f"| behaviour | taken for | {' | '.join(CELLS)} |\n{'| --- ' * (len(CELLS) + 2)}|")
    broken = []
    for name, cells in rows(names or list(BEHAVIOURS)):
        print(f"| `{name}` | {BEHAVIOURS[name].taken} | {' | '.join(map(str, cells))} |", flush=True)
        broken += [f"{name}, {head}: {rule}" for head, cell in zip(CELLS, cells, strict=True) for rule in cell.broken]
    print("", *(broken or ["No rule is broken."]), sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
