"""The results of a batch by request: what came several times counts once if it agrees, else not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...contracts.batch import BatchLine
from ...contracts.errors import ModelError, TransientError
from ...contracts.records import AnyResponse

Outcome = AnyResponse | ModelError


@dataclass
class Results:
    """The lines of a batch by custom id."""

    lines: dict[str, list[BatchLine]]
    """Different lines of an id; two ways of writing the same answer are two."""
    doubled: int
    """Lines beyond the first of an id."""
    unreadable: int
    contradictory: int = 0
    """Requests whose results contradict each other, of those that were read."""

    @classmethod
    def of(cls, lines: Iterable[BatchLine]) -> Results:
        """Sort lines by id."""
        named: dict[str, list[BatchLine]] = {}
        doubled = unreadable = 0
        for line in lines:
            if not line.name:
                unreadable += 1
                continue
            same = named.setdefault(line.name, [])
            doubled += bool(same)
            if line not in same:
                same.append(line)
        return cls(named, doubled, unreadable)

    def read(self, name: str, read: Callable[[BatchLine], Outcome]) -> Outcome:
        """Return what the lines of an id say, or an error if they contradict each other."""
        first, *others = map(read, self.lines[name])
        if all(map(_agrees(first), others)):
            return first
        self.contradictory += 1
        return TransientError(
            f"the provider gave {len(others) + 1} results that contradict each other; none of them counts.",
            code="batch.contradiction",
        )


def _agrees(first: Outcome) -> Callable[[Outcome], bool]:
    if isinstance(first, ModelError):
        # Two failures differ in the identifiers that a provider gives them; both say that there is no answer.
        return lambda other: type(other) is type(first)
    return lambda other: other == first
