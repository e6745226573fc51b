"""Ceilings of the code: lines and vague names per room, and the files and functions that exceed a limit.

    python -m tests.budgets                     print each room beside its ceiling and its aim
    python -m tests.budgets check               exit with 1 where a ceiling is exceeded or too loose
    python -m tests.budgets lower               write lower ceilings where the code has shrunk; never a higher one
    python -m tests.budgets raise ROOM REASON   write the ceilings of one room as its code is, with the reason

`budgets.toml` holds the ceilings. A ceiling that is raised keeps its reason there, so that a commit shows it.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .measured_code import (
    ROOT,
    functions_of_rooms,
    lines_of_rooms,
    long_files,
    long_functions,
    many_parameters,
    room_of,
    vague_names_of_rooms,
)

FILE = ROOT / "tests" / "budgets.toml"
STEP = 20
"""Ceilings of lines are multiples of this, so that a small mend does not meet its ceiling."""
LOOSEST = 0.03
"""Share of a room by which a ceiling of lines may exceed it; `lower` then writes a lower one."""
HEAD = """\
# Ceilings of the code, checked by `make check`. `python -m tests.budgets lower` writes them anew, only ever lower;
# `python -m tests.budgets raise ROOM "reason"` raises those of one room.
# lines, aim: lines of Python, and what they shall become. names: vague names of local variables (CONTRIBUTING.md).
"""
LISTS = {
    "files": ("modules of more than 400 lines", long_files),
    "functions": ("functions of more than 60 lines, without the docstring", long_functions),
    "parameters": ("functions of more than five parameters", many_parameters),
}
"""What exceeds a limit: each list of exceptions may only shrink."""


class Room(NamedTuple):
    """The ceilings of a room."""

    lines: int
    names: int
    aim: int | None = None
    reason: str = ""


class Budgets(NamedTuple):
    """All ceilings."""

    rooms: Mapping[str, Room]
    lists: Mapping[str, Mapping[str, int]]


def read() -> Budgets:
    """Return the ceilings of the file."""
    table = tomllib.loads(FILE.read_text("utf-8"))
    return Budgets({name: Room(**room) for name, room in table["rooms"].items()}, {key: table[key] for key in LISTS})


def measured() -> Budgets:
    """Return the code as it is, in the form of ceilings."""
    names = vague_names_of_rooms()
    rooms = {room: Room(lines, names[room]) for room, lines in lines_of_rooms().items()}
    return Budgets(rooms, {key: measure() for key, (_, measure) in LISTS.items()})


def problems(ceilings: Budgets, code: Budgets) -> Iterator[str]:
    """Yield a sentence for each ceiling that is exceeded, too loose, missing or of nothing."""
    for room in sorted(code.rooms.keys() ^ ceilings.rooms.keys()):
        yield f"{room}: the folder and its ceiling do not exist together. Run: python -m tests.budgets lower"
    for room in sorted(code.rooms.keys() & ceilings.rooms.keys()):
        yield from _problems_of_a_room(room, ceilings.rooms[room], code.rooms[room])
    for key, (title, _) in LISTS.items():
        allowed, present = ceilings.lists[key], code.lists[key]
        for name in sorted(present):
            if present[name] > allowed.get(name, 0):
                most = allowed.get(name, "the limit")
                yield f"{name}: {present[name]} is more than {most} ({title}). Make it smaller."
        for name in sorted(allowed.keys() - present.keys()):
            yield f"{name} is no exception any more ({title}). {LOWER}"


def _problems_of_a_room(name: str, ceiling: Room, code: Room) -> Iterator[str]:
    mend = f'Remove some, or run: python -m tests.budgets raise {name} "reason"'
    if code.lines > ceiling.lines:
        yield f"{name}: {code.lines:,} lines exceed the ceiling of {ceiling.lines:,}. {mend}"
    if code.names > ceiling.names:
        yield f"{name}: {code.names} vague local names exceed the ceiling of {ceiling.names}. Say what the things are."
    if ceiling.lines > (ceiling.aim or 0) and ceiling.lines > code.lines + max(2 * STEP, LOOSEST * code.lines):
        yield f"{name}: the ceiling of {ceiling.lines:,} is too loose for {code.lines:,} lines. {LOWER}"
    if ceiling.aim is not None and ceiling.lines > ceiling.aim and not ceiling.reason:
        yield f"{name}: the ceiling of {ceiling.lines:,} is above the aim of {ceiling.aim:,} without a reason. {mend}"


LOWER = "Run: python -m tests.budgets lower"


def lowered(ceilings: Budgets, code: Budgets) -> Budgets:
    """Return ceilings that fit the code where it is smaller; a new room gets its size, one that is gone none."""
    rooms = {}
    for name, size in code.rooms.items():
        before = ceilings.rooms.get(name, Room(_rounded(size.lines), size.names))
        lines = max(_rounded(size.lines), min(before.aim or 0, before.lines))
        rooms[name] = before._replace(lines=min(before.lines, lines), names=min(before.names, size.names))
    lists = {
        key: {name: min(size, allowed[name]) for name, size in code.lists[key].items() if name in allowed}
        for key, allowed in ceilings.lists.items()
    }
    return Budgets(rooms, lists)


def raised(ceilings: Budgets, code: Budgets, room: str, reason: str) -> Budgets:
    """Return the ceilings with those of one room as its code is, and with the reason."""
    size = code.rooms[room]
    before = ceilings.rooms.get(room, Room(0, 0))
    lines = max(before.lines, _rounded(size.lines))
    rooms = {**ceilings.rooms, room: before._replace(lines=lines, names=max(before.names, size.names), reason=reason)}
    lists = {
        key: {
            **ceilings.lists[key],
            **{name: size for name, size in present.items() if room_of(name.partition("::")[0]) == room},
        }
        for key, present in code.lists.items()
    }
    return Budgets(rooms, lists)


def _rounded(lines: int) -> int:
    return -(-lines // STEP) * STEP


def text_of(budgets: Budgets) -> str:
    """Return the file of the ceilings."""
    rows = [HEAD, "[rooms]"]
    rows += [f"{_quoted(name)} = {_inline(room)}" for name, room in sorted(budgets.rooms.items())]
    for key, (title, _) in LISTS.items():
        rows += ["", f"# {title}", f"[{key}]"]
        rows += [f"{_quoted(name)} = {size}" for name, size in sorted(budgets.lists[key].items())]
    return "\n".join(rows) + "\n"


def _inline(room: Room) -> str:
    values: dict[str, Any] = {"lines": room.lines, "aim": room.aim, "names": room.names, "reason": room.reason}
    shown = {key: value for key, value in values.items() if value not in (None, "")}
    return f"{{ {', '.join(f'{k} = {_quoted(v) if isinstance(v, str) else v}' for k, v in shown.items())} }}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _print(ceilings: Budgets, code: Budgets) -> None:
    functions = functions_of_rooms()
    print(f"{'room':20} {'lines':>7} {'ceiling':>7} {'aim':>7} {'names':>5} {'ceiling':>7} per 100 functions")
    for name, size in code.rooms.items():
        ceiling = ceilings.rooms.get(name, Room(0, 0))
        share = 100 * size.names / max(functions.get(name, 0), 1)
        aim = "" if ceiling.aim is None else f"{ceiling.aim:,}"
        print(f"{name:20} {size.lines:7,} {ceiling.lines:7,} {aim:>7} {size.names:5} {ceiling.names:7} {share:17.1f}")


def main(words: list[str]) -> int:
    """Run one of the commands, and return the exit code."""
    ceilings, code = read(), measured()
    match words:
        case []:
            _print(ceilings, code)
        case ["check"]:
            lines = list(problems(ceilings, code))
            print("\n".join(lines) or "All ceilings hold.")
            return int(bool(lines))
        case ["lower"]:
            FILE.write_text(text_of(lowered(ceilings, code)), "utf-8")
        case ["raise", room, reason] if room in code.rooms and reason.strip():
            FILE.write_text(text_of(raised(ceilings, code, room, reason)), "utf-8")
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
