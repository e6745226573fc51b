"""The head of a golden file: digests of what a study asks and of the numbers that it makes of stored responses.

A golden file stands beside the certificate of its study. Whether a certificate is of the present numbers is read from
the first line of the file; that the line is true of the code is for `lab calibrate --verify` and the tests of the
package.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from ..contracts.errors import DataError

SUFFIX = ".golden.xz"
STATED = "stated"
"""The case of the options that a study is calibrated with; the name of any other is the option that differs."""
DIGITS = 9
LEAST = 1e-12
"""Numbers that are nearer to 0 are 0."""
NUDGE = 1 + 3e-12
"""A decimal that ends in the middle between two others of nine digits would follow the last bit of a sum."""
TOLERANCE = 1e-8
"""Relative difference of equal numbers: one of them is rounded."""
NUMBERS = ("value", "low", "high", "p", "p_adjusted", "effect", "n")
"""Fields of an estimate that the digest covers, with whether it is shown, its group, and missing answers by status."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a golden file says of its study."""

    study: str
    prejudge: str
    """Version with which the numbers were last computed."""
    questions: str
    """Digest of every trial and its question, in the stated case."""
    cases: dict[str, str]
    """Digest of the numbers of each case."""
    battery: dict[str, str] = {}
    """Digests of the intervals, tests and effect sizes that the study uses, of the battery of statistics."""
    reason: str = ""
    """Why the numbers were written anew; empty: they are the first ones."""

    @property
    def digest(self) -> str:
        """Return the digest of the numbers of all cases."""
        return digest_of(self.cases)


def rounded(value: Any, digits: int = DIGITS) -> Any:
    """Return numbers with so many significant digits, also those in lists and tables; all else as it is."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return 0.0 if abs(value) < LEAST else float(f"{value * NUDGE:.{digits - 1}e}")
    if isinstance(value, Mapping):
        return {name: rounded(part, digits) for name, part in value.items()}
    return [rounded(part, digits) for part in value] if isinstance(value, list | tuple) else value


def is_close(one: Any, other: Any) -> bool:
    """Return whether two values are equal, numbers up to their rounding."""
    if isinstance(one, float | int) and isinstance(other, float | int) and not isinstance(one, bool):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=LEAST)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_close(part, other[name]) for name, part in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_close, one, other))
    return bool(one == other)


def digest_of(record: Any) -> str:
    """Return the digest of a record of plain values."""
    return hashlib.sha256(_CANONICAL.encode(record).encode()).hexdigest()[:32]


def numbers_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of an estimate's flat row which the digest covers, rounded."""
    numbers = {name: rounded(None if row.get(name) is None else float(row[name])) for name in NUMBERS}
    shown = None if row.get("verdict") is None else float(row["verdict"] in ("above", "below"))
    return {**numbers, "shown": shown, "missing": dict(row.get("missing") or {})}


def digest_of_numbers(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of the numbers of estimates, in any order."""
    lines = (_CANONICAL.encode([row["metric"], row["group"], numbers_of(row)]) for row in rows)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:32]


def read_head(path: Path) -> Head:
    """Return what a golden file says of its study; only its first line is read.

    Raises:
        DataError: the file cannot be read, or is none.
    """
    try:
        with lzma.open(path) as file:
            return msgspec.json.decode(file.readline(), type=Head)
    except (OSError, EOFError, lzma.LZMAError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{str(path)!r} is not a golden file: {error}.", code="calibration.golden") from None


@cache
def battery() -> dict[str, str]:
    """Return the digests of the battery of statistics, by the name of an interval, a test or an effect size."""
    text = files(f"{__package__.rpartition('.')[0]}.statistics").joinpath("battery.json").read_text("utf-8")
    return dict(json.loads(text))


def used_of_battery(names: Iterable[str]) -> dict[str, str]:
    """Return the digests of what the battery has for these names; details of a name may follow, as `, pairs`."""
    digests = battery()
    longest = (max((recipe for recipe in digests if name.startswith(recipe)), key=len, default="") for name in names)
    return {name: digests[name] for name in sorted({*longest} - {""})}
