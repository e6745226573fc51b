"""Which answer counts where a file has several for one question, or for one deterministic request."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from ..contracts import Trial
from ..contracts.canonical import encode
from ..contracts.errors import DataError, UsageError
from ..contracts.records import AnyRequest, Generate
from ..tables.inspect_log import EPOCH
from .answers import FIELDS, PROBABILITY, Answers, Row
from .matching import Group

Duplicates = Literal["first", "last", "all", "refuse"]
Disagreeing = Literal["keep", "drop", "refuse"]


def ensure_rules(duplicates: str, disagreeing: str) -> None:
    """Refuse an unknown rule; raises `UsageError`."""
    for name, rule, kind in (("duplicates", duplicates, Duplicates), ("disagreeing", disagreeing, Disagreeing)):
        if rule not in get_args(kind):
            raise UsageError(f"{name} is {rule!r}. It may be: {', '.join(get_args(kind))}.", code="options.value")


class Settled(NamedTuple):
    """The rows that count."""

    rows: dict[int, Row]
    """By the ordinal of the trial that each answers, among `expanded` trials."""
    copies: dict[int, int]
    """By ordinal of a trial of the plan, how many answers more than the plan asks it has (`all`)."""
    surplus: int
    """Number of rows that were left out."""


def settle(answers: Answers, groups: Iterable[Group], rule: Duplicates) -> Settled:
    """Return the row of each trial, and the number of surplus rows that were left out.

    Several rows for a repeated question fill its repeats in the order of the file. Of surplus rows `refuse` allows only
    one that gives the same answer again; with `all` each is an answer of its own.

    Raises:
        DataError: there are more rows for a question than it is asked, with different answers.
    """
    chosen: dict[int, list[Row]] = {}
    surplus = 0
    for group in groups:
        room, rows = len(group.ordinals), group.rows
        if len(rows) > room and rule != "all" and not are_epochs(rows):
            if rule == "refuse":
                _ensure_equal(answers, group)
            surplus += len(rows) - room
            rows = rows[-room:] if rule == "last" else rows[:room]
        for ordinal, row in zip(group.ordinals, rows, strict=False):
            chosen[ordinal] = [row]
        if rows[room:]:
            chosen[group.ordinals[-1]] += rows[room:]
    copies = {ordinal: len(rows) - 1 for ordinal, rows in chosen.items() if len(rows) > 1}
    found: dict[int, Row] = {}
    before = 0
    for ordinal in sorted(chosen):
        found |= {ordinal + before + number: row for number, row in enumerate(chosen[ordinal])}
        before += copies.get(ordinal, 0)
    return Settled(found, copies, surplus)


def are_epochs(rows: Sequence[Row]) -> bool:
    """Return whether rows are repetitions of a question that their file numbers: each is a sample of its own."""
    epochs = [row.cells.get(EPOCH) for row in rows]
    return None not in epochs and len(set(map(str, epochs))) == len(rows)


def _ensure_equal(answers: Answers, group: Group) -> None:
    room, rows = len(group.ordinals), group.rows
    if room == 1 and len({_said(row) for row in rows}) == 1:
        return
    asked = "once" if room == 1 else f"{room} times"
    epochs = [str(row.cells[EPOCH]) for row in rows if row.cells.get(EPOCH) is not None]
    asked += f" (epochs {', '.join(epochs)})" if epochs else ""
    shown = f": {_said(rows[0])} and {_said(rows[room])}" if room == 1 else ""
    raise rows[room].fault(
        f"{len(rows)} rows ({answers.numbers(rows)}) are for trial {group.trials[0]!r}, which is asked {asked}{shown}. "
        "Remove the extra rows, or choose: --duplicates first, --duplicates last, or --duplicates all, which counts "
        "every row.",
        "import.too-many",
    )


def expanded(trials: Iterable[Trial], copies: Mapping[int, int]) -> Iterator[Trial]:
    """Yield the trials of a plan, each followed by its copies: `ID#2`, `ID#3` ..."""
    for ordinal, trial in enumerate(trials):
        yield trial
        for number in range(2, copies.get(ordinal, 0) + 2):
            yield Trial(f"{trial.id}#{number}", trial.factors, trial.request)


def distinct_draws(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Yield trials of which no two ask the same: repeats of a request are further draws (`sample`) of it.

    Raises:
        DataError: a request that is repeated has one answer by its kind, such as a log-probability.
    """
    asked: set[bytes] = set()
    for trial in trials:
        request = trial.request
        while (digest := hashlib.sha256(encode(request)).digest()) in asked:
            if not isinstance(request, Generate):
                raise DataError(
                    f"trial {trial.id!r} has more than one answer, and its kind of request has one. --duplicates all "
                    "is for answers in words: choose --duplicates first or last.",
                    code="import.two-answers",
                )
            request = msgspec.structs.replace(request, sample=request.sample + 1)
        asked.add(digest)
        yield trial if request is trial.request else Trial(trial.id, trial.factors, request)


def one_answer(
    answers: Answers, trials: Iterable[Trial], rows: Mapping[int, Row], rule: Duplicates
) -> tuple[dict[int, Row], int]:
    """Give trials with the same deterministic request the same answer; also return the number of rows replaced.

    Raises:
        DataError: the rule is `refuse`, and such trials have different answers.
    """
    asked: dict[bytes, list[int]] = defaultdict(list)
    for ordinal, trial in enumerate(trials):
        if ordinal in rows and _deterministic(trial.request):
            asked[hashlib.sha256(encode(trial.request)).digest()].append(ordinal)
    found, replaced = dict(rows), 0
    for ordinals in asked.values():
        unlike = [o for o in ordinals if _said(rows[o]) != _said(rows[ordinals[0]])]
        if unlike and rule == "refuse":
            one, two = rows[ordinals[0]], rows[unlike[0]]
            raise two.fault(
                f"{_said(two)} answers the same request as {one.place}, {_said(one)}. A request "
                "without sampling has one answer. Choose: --duplicates first, or --duplicates last; or, if the model "
                "did sample, set its temperature, if the study has this option (--set temperature=1).",
                "import.two-answers",
            )
        if unlike:
            chosen = (max if rule == "last" else min)((rows[o] for o in ordinals), key=answers.order)
            replaced += sum(_said(rows[o]) != _said(chosen) for o in ordinals)
            found |= dict.fromkeys(ordinals, chosen)
    return found, replaced


def _deterministic(request: AnyRequest) -> bool:
    return request.sampling.temperature == 0 if isinstance(request, Generate) else type(request) in FIELDS


def _said(row: Row) -> str:
    """Return the answer of a row as text, to compare and to show."""
    names = {name for fields in FIELDS.values() for name in fields} | {"status", "tokens"}
    said: dict[str, Any] = {n: c for n, c in row.cells.items() if n in names or n.startswith(PROBABILITY)}
    return repr(said.pop("response")) if said.keys() == {"response"} else repr(said)
