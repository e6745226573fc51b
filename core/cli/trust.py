"""`prejudge trust`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click

from ..catalogue.folders import candidates
from ..catalogue.judging import Judge
from ..catalogue.registry import FILE_NAME
from ..catalogue.study import Catalogue
from ..catalogue.trust import Want, is_remembered, read_candidate, remember, revoke, trusted_files, wants_of
from ..contracts.errors import PrejudgeError, UsageError
from ..engine.foreign import digest_of, foreign_runs, lines_of, store_path
from ..store import Store
from ..store.urls import DEFAULT
from .completing import complete_file
from .outlet import echo

KINDS = {
    "secret": "Secrets:",
    "address": "Addresses:",
    "file": "Files:",
    "code": "Code:",
    "undeclared": "Not declared, so that it may be any of these:",
    "name": "Names:",
}
"""Heading by kind of effect, in the order in which they are shown."""
_SQLITE = b"SQLite format 3\0"


class Subject(NamedTuple):
    """Something that can be trusted."""

    path: Path
    what: str
    digest: str
    wants: list[Want]


@click.command("trust")
@click.argument("path", default=".", shell_complete=complete_file)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--revoke", "revoked", is_flag=True, help="Withdraw trust from the file.")
@click.option("--list", "listed", is_flag=True, help="List the trusted files.")
def trust_(path: str, yes: bool, revoked: bool, listed: bool) -> None:
    """Show the effects of a folder, a model or a store, and trust it.

    PATH is a folder with a registry.toml (by default the working directory), such a file, a store, or the folder or
    file of a model. Effects are secrets that are used, addresses that are asked, files outside of the folder that are
    read, and code that runs.

    Commands read the registry.toml of the working directory by themselves, and resume the runs of a store. What
    somebody else wrote there has no such effect unless you trust it. Trust is for the file as it is now: after a
    change, you are asked again. Of a model the effects are shown only: it is loaded when you name it.
    """
    if listed:
        for name, sha256 in sorted(trusted_files().items()):
            echo(f"{name} (sha256 {sha256[:12]})")
        return
    if revoked:
        files = [file for file in _files_of(path) if revoke(file)]
        for file in files:
            echo(f"{file} is no longer trusted.")
        if not files:
            echo(f"{path} was not trusted.")
        return
    subjects = list(_subjects(path))
    for subject in subjects:
        _ask(subject, yes=yes)
    if not (_show_model(path) or subjects):
        raise UsageError(
            f"there is nothing to trust in {path!r}: no {FILE_NAME}, no store and no model.", code="trust.nothing"
        )


def _files_of(path: str) -> list[Path]:
    place = Path(path)
    return [place / FILE_NAME, place / DEFAULT] if place.is_dir() else [_store_path(path) if "://" in path else place]


def _store_path(url: str) -> Path:
    with Store(url, writable=False) as store:
        return store_path(store)


def _subjects(path: str) -> Iterable[Subject]:
    if "://" in path:
        yield _store(path)
        return
    for place in _files_of(path):
        if _is_store(place):
            yield _store(str(place))
        elif place.is_file() and place.suffix == ".toml":
            candidate = read_candidate(place)
            yield Subject(candidate.path, "file", candidate.sha256, wants_of(candidate))


def _is_store(path: Path) -> bool:
    if not path.is_file():
        return False  # a pipe would be waited for
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _store(where: str) -> Subject:
    with Store(where, writable=False) as store:
        runs = foreign_runs(Catalogue.load_allowed(), store)
        return Subject(store_path(store), "store", digest_of(runs), list(lines_of(runs)))


def _ask(subject: Subject, *, yes: bool) -> None:
    echo(f"{subject.path} (sha256 {subject.digest[:12]})")
    if is_remembered(subject.path, subject.digest):
        echo(f"This {subject.what} is trusted. To revoke that: prejudge trust --revoke {subject.path}")
        return
    if not subject.wants:
        echo(
            "It needs no trust: it only adds models and studies that run no code and ask no other machine."
            if subject.what == "file"
            else "It needs no trust: no run of somebody else uses a secret, an address, code or a file elsewhere."
        )
        return
    _show(subject.wants)
    if not yes:
        click.confirm(f"Trust this {subject.what} as it is now?", abort=True)
    remember(subject.path, subject.digest)
    echo(f"Trusted. To revoke that: prejudge trust --revoke {subject.path}")


def _show(wants: Iterable[Want]) -> None:
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for want in wants:
        by_kind[want.kind].append(want.sentence)
    for kind, heading in KINDS.items():
        if by_kind[kind]:
            echo(heading)
            for sentence in by_kind[kind]:
                echo(f"- {sentence}")


def _show_model(path: str) -> bool:
    """Show the effects of the files of a model; return whether there is one."""
    catalogue = Catalogue.load_allowed()
    try:
        ways = candidates(path, catalogue.plugins)
    except PrejudgeError:
        return False
    judge = Judge(Path.cwd(), catalogue.plugins, catalogue.registry)
    for way in ways:
        echo(f"Loaded as {way.name}, since {way.because}:")
        effects = judge.effects(catalogue.registry.model(way.name))
        wants = [Want(effect.kind, "", "", _sentence(effect.sentence, effect.unless)) for effect in effects]
        _show(dict.fromkeys(wants))
    return True


def _sentence(sentence: str, unless: str) -> str:
    return f"not done, since {unless}: {sentence}" if unless else sentence
