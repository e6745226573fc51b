"""The content of a golden file: its records, what differs between two, and how they are written and read."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...catalogue.golden import STATED, Head, digest_of_numbers, is_close, read_head
from ...contracts.adapter import Identity
from ...contracts.errors import DataError
from ...contracts.files import replaced_whole
from .cases import Case

Rows = dict[str, dict[str, Any]]
"""Records by their key."""


class Computed(msgspec.Struct):
    """What the responses give in one case."""

    case: Case
    readings: Rows = {}
    """What is read of each answer, by stage and trial."""
    estimates: Rows = {}
    """Estimates in flat form, by measure and group."""


class Golden(msgspec.Struct):
    """The content of a golden file."""

    head: Head
    identities: dict[str, Identity]
    """By role and model."""
    responses: dict[str, Rows]
    """By role and model, then by the digest of the request."""
    cases: dict[str, Computed]
    unknown: int = 0
    """Requests that no response answers."""


def digests_of(cases: Mapping[str, Computed]) -> dict[str, str]:
    """Return the digest of the numbers of each case."""
    return {name: digest_of_numbers(computed.estimates.values()) for name, computed in cases.items()}


def settle(before: Golden | None, after: Golden) -> Golden:
    """Return a golden file in which numbers that are equal up to rounding are those of the file before."""
    if before is None:
        return after
    for name, computed in after.cases.items():
        if (stored := before.cases.get(name)) is not None:
            computed.readings = _settled(stored.readings, computed.readings)
            computed.estimates = _settled(stored.estimates, computed.estimates)
    after.head = msgspec.structs.replace(after.head, cases=digests_of(after.cases))
    return after


def _settled(stored: Rows, rows: Rows) -> Rows:
    return {key: stored[key] if key in stored and is_close(stored[key], row) else row for key, row in rows.items()}


class Difference(msgspec.Struct, frozen=True):
    """A value that differs between two golden files."""

    case: str
    of: str
    """The estimate, as measure and group, or the trial, by stage."""
    field: str
    old: Any
    new: Any

    def __str__(self) -> str:
        """Return it in one line."""
        return f"{self.case}: {self.of}: {self.field}: {self.old!r} -> {self.new!r}"


def differences(before: Golden, after: Golden) -> Iterator[Difference]:
    """Yield every value that differs by more than rounding, estimates first."""
    if before.head.questions != after.head.questions:
        yield Difference(STATED, "questions", "digest", before.head.questions, after.head.questions)
    names = list(dict.fromkeys((*before.cases, *after.cases)))
    for part in ("estimates", "readings"):
        for name in names:
            old, new = before.cases.get(name), after.cases.get(name)
            if old is None or new is None:
                yield Difference(name, "case", "present", old is not None, new is not None)
                continue
            yield from _differing(name, getattr(old, part), getattr(new, part))


def _differing(case: str, old: Rows, new: Rows) -> Iterator[Difference]:
    for key in dict.fromkeys((*old, *new)):
        if key not in old or key not in new:
            yield Difference(case, key, "present", key in old, key in new)
            continue
        for field in dict.fromkeys((*old[key], *new[key])):
            pair = old[key].get(field), new[key].get(field)
            if not is_close(*pair):
                yield Difference(case, key, field, *pair)


def write(golden: Golden, path: Path) -> None:
    """Write a golden file; a case has only the records in which it differs from the stated one."""
    lines = [msgspec.to_builtins(golden.head)]
    lines += [{"model": key, "identity": msgspec.to_builtins(identity)} for key, identity in golden.identities.items()]
    lines += [
        {"model": key, "request": name} | record
        for key, rows in golden.responses.items()
        for name, record in sorted(rows.items())
    ]
    stated = golden.cases[STATED]
    for computed in golden.cases.values():
        base = Computed(computed.case) if computed is stated else stated
        lines.append({"case": msgspec.to_builtins(computed.case)})
        lines += [{"reading": line} for line in _without(base.readings, computed.readings)]
        lines += [{"estimate": line} for line in _without(base.estimates, computed.estimates)]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    with replaced_whole(path) as place:
        place.write_bytes(lzma.compress(text.encode()))


def _without(base: Rows, rows: Rows) -> Iterator[list[Any]]:
    """Yield what differs from the base: records by key, and keys alone of those that are gone."""
    yield from ([key, row] for key, row in rows.items() if base.get(key) != row)
    yield from ([key] for key in base if key not in rows)


def read(path: Path) -> Golden:
    """Return the content of a golden file.

    Raises:
        DataError: the file cannot be read, or is none.
    """
    golden = Golden(read_head(path), {}, {}, {})
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            next(file)
            for text in file:
                _take(golden, json.loads(text))
    except (
        OSError,
        EOFError,
        lzma.LZMAError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        msgspec.MsgspecError,
    ) as error:
        raise DataError(f"{str(path)!r} is not a golden file: {error!r}.", code="calibration.golden") from None
    return golden


def _take(golden: Golden, line: dict[str, Any]) -> None:
    if "identity" in line:
        golden.identities[line["model"]] = msgspec.convert(line["identity"], Identity)
        golden.responses[line["model"]] = {}
    elif "request" in line:
        golden.responses[line.pop("model")][line.pop("request")] = line
    elif "case" in line:
        case = msgspec.convert(line["case"], Case)
        base = golden.cases.get(STATED, Computed(case))
        golden.cases[case.name] = Computed(case, dict(base.readings), dict(base.estimates))
    else:
        last = [*golden.cases.values()][-1]
        rows, (key, *record) = (
            (last.readings, line["reading"]) if "reading" in line else (last.estimates, line["estimate"])
        )
        rows.pop(key, None)
        if record:
            rows[key] = record[0]
