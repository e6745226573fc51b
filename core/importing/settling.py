"""Which answer counts where a file has several for one question, or for one deterministic request."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from ..contracts import Trial
from ..contracts.canonical import encode
from ..contracts.errors import UsageError
from ..contracts.records import AnyRequest, Generate
from .answers import FIELDS, PROBABILITY, Answers, Row
from .matching import Group

Duplicates = Literal["first", "last", "refuse"]
Disagreeing = Literal["keep", "drop", "refuse"]


def ensure_rules(duplicates: str, disagreeing: str) -> None:
    """Refuse an unknown rule; raises `UsageError`."""
    for name, rule, kind in (("duplicates", duplicates, Duplicates), ("disagreeing", disagreeing, Disagreeing)):
        if rule not in get_args(kind):
            raise UsageError(f"{name} is {rule!r}. It may be: {', '.join(get_args(kind))}.", code="options.value")


def one_each(answers: Answers, groups: Iterable[Group], rule: Duplicates) -> tuple[dict[int, Row], int]:
    """Return the row of each trial by its ordinal, and the number of surplus rows that were left out.

    Several rows for a repeated question fill its repeats in the order of the file. `refuse` allows a surplus row only
    where it gives the same answer again.

    Raises:
        DataError: there are more rows for a question than it is asked, with different answers.
    """
    found: dict[int, Row] = {}
    surplus = 0
    for group in groups:
        room, rows = len(group.ordinals), group.rows
        if len(rows) > room:
            if rule == "refuse" and (room > 1 or len({_said(row) for row in rows}) > 1):
                asked = "once" if room == 1 else f"{room} times"
                shown = f": {_said(rows[0])} and {_said(rows[room])}" if room == 1 else ""
                raise answers.fault(
                    rows[room],
                    f"{len(rows)} rows ({answers.numbers(rows)}) are for trial {group.trials[0]!r}, which is asked "
                    f"{asked}{shown}. Remove the extra rows, or choose: --duplicates first, or --duplicates last.",
                    "import.too-many",
                )
            surplus += len(rows) - room
            rows = rows[-room:] if rule == "last" else rows[:room]
        found |= dict(zip(group.ordinals, rows, strict=False))
    return found, surplus


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
            raise answers.fault(
                two,
                f"{_said(two)} answers the same request as {answers.unit} {one.number}, {_said(one)}. A request "
                "without sampling has one answer. Choose: --duplicates first, or --duplicates last; or, if the model "
                "did sample, set its temperature, if the study has this option (--set temperature=1).",
                "import.two-answers",
            )
        if unlike:
            chosen = (max if rule == "last" else min)((rows[o] for o in ordinals), key=lambda row: row.number)
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
