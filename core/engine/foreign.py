"""Runs that somebody else made, and what their models would use, ask and read that this user did not name.

A run records its models with the settings in brackets behind their names, and `resume` asks them again. Of the runs
that this user made on this machine the record has a proof by a key of the user's own; all others are as untrusted as
the registry of a copied folder.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..catalogue.judging import Judge
from ..catalogue.study import Catalogue, Study
from ..catalogue.trust import Want, is_remembered, user_key
from ..contracts.errors import DataError, UsageError
from ..store import RunRow, Store, list_runs
from ..store.urls import option_words, show
from .manifest import IMPORTED, Manifest, manifest_of


class ForeignRun(NamedTuple):
    """A run of somebody else that needs trust to be asked."""

    run: str
    study: Study
    wants: tuple[Want, ...]


def wants_of_study(catalogue: Catalogue, study: Study, models: Iterable[str] = ()) -> list[Want]:
    """Return what needs trust of a recorded study, if somebody else named its models and files."""
    judge = Judge(Path.cwd(), catalogue.plugins, catalogue.registry)
    wants = [
        Want(effect.kind, "model", name, effect.sentence)
        for name in dict.fromkeys((*study.roles.values(), *models))
        for effect in judge.recorded(name)
    ]
    options = judge.options(study.probe, study.metrics, study.options)
    wants += [Want(effect.kind, "study", study.name, effect.sentence) for effect in options]
    return list(dict.fromkeys(wants))


def maker_of(catalogue: Catalogue, run: str, study: Study) -> str:
    """Return the proof that this user names the models of a run; empty where none is needed, or none can be kept."""
    if not wants_of_study(catalogue, study):
        return ""
    try:
        return _proof(run, study)
    except UsageError:
        return ""


def is_own(manifest: Manifest) -> bool:
    """Return whether this user made a run, with the models that its record names."""
    if not manifest.maker:
        return False
    try:
        return hmac.compare_digest(manifest.maker, _proof(manifest.run, manifest.study))
    except UsageError:
        return False


def foreign_runs(catalogue: Catalogue, store: Store) -> list[ForeignRun]:
    """Return the runs of a store that need trust to be asked, the oldest first."""
    return [run for row in list_runs(store) if (run := _foreign(catalogue, row)) is not None]


def digest_of(runs: Iterable[ForeignRun]) -> str:
    """Return the digest by which trust in foreign runs is remembered: of their names and studies."""
    return hashlib.sha256(msgspec.json.encode([(run.run, run.study) for run in runs], order="sorted")).hexdigest()


def store_path(store: Store) -> Path:
    """Return where trust in a store is remembered: its file, or the text of its URL as a path."""
    return Path(str(store.url.database)) if store.url.get_backend_name() == "sqlite" else Path(f"/{show(store.url)}")


def ensure_own(catalogue: Catalogue, store: Store, manifest: Manifest, models: Iterable[str] = ()) -> None:
    """Refuse to ask the models of a run that somebody else made, if that needs trust; `models` are further ones.

    Raises:
        UsageError: what it wants first, and the command to see all and trust it.
    """
    further = [name for name in models if name not in manifest.study.roles.values()]
    if is_own(manifest) and not further:
        return
    wants = wants_of_study(catalogue, manifest.study, further)
    if not wants or (not further and is_remembered(store_path(store), digest_of(foreign_runs(catalogue, store)))):
        return
    more = f", and {len(wants) - 1} more" if len(wants) > 1 else ""
    where = option_words(store.url).removeprefix(" --store ") or "prejudge.db"
    raise UsageError(
        f"the run {manifest.run} was made by somebody else: {wants[0].sentence}{more}. To see all and trust the "
        f"runs of this store: prejudge trust {where}",
        code="run.untrusted",
        wants=[want.sentence for want in wants],
    )


def _foreign(catalogue: Catalogue, row: RunRow) -> ForeignRun | None:
    try:
        manifest = manifest_of(row)
    except DataError:
        return None  # it cannot be asked
    if manifest.mode == IMPORTED or is_own(manifest) or not (wants := wants_of_study(catalogue, manifest.study)):
        return None
    return ForeignRun(manifest.run, manifest.study, tuple(wants))


def _proof(run: str, study: Study) -> str:
    text = msgspec.json.encode((run, study), order="sorted")
    return hmac.new(user_key(), text, hashlib.sha256).hexdigest()


def lines_of(runs: Iterable[ForeignRun]) -> Iterator[Want]:
    """Yield what foreign runs want, each with the name of its run."""
    for run in runs:
        yield from (Want(want.kind, "run", run.run, want.sentence) for want in run.wants)
