"""The encoder's confusion of the classes on held-out sentences, from the file of `train-encoder`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from ...core.contracts.errors import DataError
from .masked import KNOWN
from .terms import ANTI, KINDS, STEREOTYPE

PAIRS = tuple((true, told) for true in KINDS for told in KINDS)


class _File(msgspec.Struct, frozen=True):
    categories: dict[str, dict[str, dict[str, int]]]
    several: Literal["mean", "nearest"] | None = None


def read_confusion(path: str | None) -> dict[str, tuple[int, int, int, int]]:
    """Return the counts `ENCODER` by category, if both classes have held-out sentences; empty without a file.

    The file is JSON: `{"categories": {"caste": {"stereotype": {"stereotype": 40, "anti-stereotype": 8},
    "anti-stereotype": {...}}}}`, true class first.

    Raises:
        DataError: The file cannot be read or used.
    """
    if path is None:
        return {}
    found = _read(path)
    counts = {_category(path, name): _counts(path, name, table) for name, table in found.categories.items()}
    # Without held-out sentences of a class, the encoder's error is not known.
    return {name: (ss, sa, as_, aa) for name, (ss, sa, as_, aa) in counts.items() if ss + sa and as_ + aa}


def read_several(path: str | None) -> str | None:
    """Return which cosine was used with several texts: `mean` or `nearest`; None if the file does not have it.

    Raises:
        DataError: The file cannot be read or used.
    """
    return None if path is None else _read(path).several


def _read(path: str) -> _File:
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=_File)
    except OSError as error:
        raise DataError(f"cannot read {path!r}: {error.strerror or error}.", code="file.unreadable") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} has no confusion of an encoder: {error}. `prejudge train-encoder` writes such a file.",
            code="data.syntax",
        ) from None


def _category(path: str, name: str) -> str:
    if (lowered := name.strip().lower()) not in KNOWN:
        raise DataError(f"{path}: unknown category {name!r}. Known: {', '.join(KNOWN)}.", code="data.unknown-value")
    return lowered


def _counts(path: str, name: str, table: dict[str, dict[str, int]]) -> tuple[int, int, int, int]:
    try:
        ss, sa, as_, aa = (table[true][told] for true, told in PAIRS)
    except KeyError as error:
        needs = f"needs {STEREOTYPE!r} and {ANTI!r} as true and as predicted classes"
        raise DataError(
            f"{path}: category {name!r} has no {error.args[0]!r}; it {needs}.", code="data.incomplete"
        ) from None
    if min(ss, sa, as_, aa) < 0:
        raise DataError(
            f"{path}: category {name!r} has a count below 0. Give numbers of held-out sentences.", code="data.value"
        )
    return ss, sa, as_, aa
