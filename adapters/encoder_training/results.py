"""All that a folder of trainings holds, in one file; and those of other encoders that stand beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...core.contracts.errors import DataError, UsageError
from .cells import Result
from .heads import Classified
from .summary import Summary

RESULTS = "results.json"


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All that a folder holds, in one file."""

    model: str
    digest: str
    data: dict[str, str]
    summaries: list[Summary]
    best: dict[str, str]
    """The folder of the best encoder of each split."""
    classifiers: list[Classified]
    trainings: list[Result]


def read_beside(folders: Sequence[str], out: Path) -> dict[str, Results]:
    """Return the results of other folders, each once, by the folder.

    Raises:
        UsageError: a folder does not exist, or is the call's own.
        DataError: one holds no results.
    """
    places: dict[Path, str] = {}
    for folder in folders:
        place = Path(folder).resolve()
        if place == out.resolve():
            raise UsageError(f"--beside {folder!r} is this call's own --out, which is drawn anyhow. Leave it out.")
        if not place.is_dir():
            raise UsageError(f"--beside {folder!r} is no folder. Give the --out of an earlier train-encoder.")
        places.setdefault(place, folder)
    return {folder: _read(folder) for folder in places.values()}


def told_apart(own: Results, beside: Mapping[str, Results]) -> list[Summary]:
    """Return the summaries of other results; a model of a name that is taken is told by its digest, else its folder."""
    found, names, digests = [], {own.model}, {own.digest}
    for folder, other in beside.items():
        digest = [] if other.digest in digests else [other.digest.removeprefix("sha256:")[:8]]
        known = [other.model, *(f"{other.model} ({mark})" for mark in (*digest, folder))]
        model = next(name for name in known if name not in names)
        names.add(model)
        digests.add(other.digest)
        found += [msgspec.structs.replace(summary, model=model) for summary in other.summaries]
    return found


def _read(folder: str) -> Results:
    try:
        return msgspec.json.decode((Path(folder) / RESULTS).read_bytes(), type=Results)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(
            f"{folder!r} holds no results of train-encoder: {error}. Give an --out of another call."
        ) from None
