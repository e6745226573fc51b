"""Trust in a `registry.toml`: what one may do that nobody has named, and which ones a person has trusted.

A file that is named (`--registry FILE`, `Settings(registry=...)`) may do everything: run code, use keys, ask any
address. One that merely lies in the working directory, as in a copied folder, may add models of the adapters of this
package and studies under new names, read files of its own directory, and ask this machine's own addresses without a
key. Whatever it wants beyond that (`judging`) needs `prejudge trust`, which remembers the file's place and digest.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..contracts.errors import DataError, UsageError
from ..contracts.files import replaced_whole, user_folder
from ..contracts.inputs import file_bytes
from .judging import Judge
from .plugins import BUILT_IN, Plugins
from .registry import (
    FILE_NAME,
    SINGULAR,
    ModelEntry,
    Registry,
    parse_toml,
    read_registry,
    settled,
)
from .variants import split_name

HOME = "PREJUDGE_CONFIG"
"""Environment variable that names the folder of the user's configuration."""
TRUSTED = "trusted.json"
"""File there: the digest of each trusted registry or store by its path."""
USER_KEY = "user.key"
"""File there: a random key that only this user can read."""
KEY_BYTES = 32


class Want(NamedTuple):
    """Something that needs trust."""

    kind: str
    """`secret`, `address`, `file`, `code`, `undeclared`, or `name` for an entry that takes the place of another."""
    table: str
    """The kind of the entry, such as `model`; empty: the file itself."""
    entry: str
    says: str
    """What the entry does, as the end of a sentence."""

    @property
    def sentence(self) -> str:
        """Return what wants what."""
        return f"{self.table} {self.entry!r} {self.says}" if self.entry else self.says


class Candidate(NamedTuple):
    """A registry file as it was read once, so that what is shown is what is trusted and used."""

    path: Path
    sha256: str
    own: Registry
    """Its entries, with paths as they are written."""

    @property
    def settled(self) -> Registry:
        """Return its entries with absolute paths."""
        return settled(self.own, self.path.resolve().parent)


def load_registry(user: str | Path | None = None) -> Registry:
    """Return the built-in catalogue with the entries of the user's own: `user`, or that of the working directory.

    Raises:
        DataError: the file cannot be read.
        UnknownNameError: it has an unknown key.
        UsageError: it was not named, and wants more than it may (`registry.untrusted`).
    """
    built_in = built_in_registry()
    path = Path(user if user is not None else FILE_NAME)
    if user is None and not path.is_file():
        return built_in
    candidate = read_candidate(path)
    if user is None:
        ensure_trusted(candidate)
    return _added(built_in, candidate.settled)


def load_allowed() -> tuple[Registry, list[Want]]:
    """Return the built-in catalogue with what the working directory's registry may add unasked, and what it may not.

    Raises:
        DataError: the file cannot be read.
        UnknownNameError: it has an unknown key.
    """
    path = Path(FILE_NAME)
    if not path.is_file():
        return built_in_registry(), []
    candidate = read_candidate(path)
    local, wants = (candidate.settled, []) if is_trusted(candidate) else allowed_entries(candidate)
    return _added(built_in_registry(), local), wants


def _added(built_in: Registry, own: Registry) -> Registry:
    return Registry(**{name: getattr(built_in, name) | getattr(own, name) for name in Registry.__struct_fields__})


def built_in_registry() -> Registry:
    """Return the catalogue of this package."""
    return settled(_built_in_entries(), None)


def _built_in_entries() -> Registry:
    where = f"the built-in {FILE_NAME}"
    return read_registry(parse_toml(files(BUILT_IN).joinpath(FILE_NAME).read_text("utf-8"), where), where)


def read_candidate(path: Path) -> Candidate:
    """Read a registry file.

    Raises:
        DataError: it cannot be read.
        UnknownNameError: it has an unknown key.
    """
    where = str(path.absolute())
    try:
        raw = file_bytes(path)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the registry {where!r}: {why}.", code="file.unreadable") from None
    return Candidate(path.absolute(), hashlib.sha256(raw).hexdigest(), read_registry(parse_toml(text, where), where))


def ensure_trusted(candidate: Candidate) -> None:
    """Refuse a registry that nobody has named or trusted, and that wants more than it may.

    Raises:
        UsageError: what it wants first, and the commands to look at it, trust it, or name it.
    """
    if is_trusted(candidate) or not (wants := wants_of(candidate)):
        return
    more = f", and {len(wants) - 1} more" if len(wants) > 1 else ""
    raise UsageError(
        f"the {FILE_NAME} of this folder is not trusted: {wants[0].sentence}{more}. "
        f"To see all and trust it: prejudge trust. For one command: --registry {FILE_NAME}",
        code="registry.untrusted",
        path=str(candidate.path),
        wants=[want.sentence for want in wants],
    )


def wants_of(candidate: Candidate) -> list[Want]:
    """Return what a registry wants that needs trust; none if it may be read unasked."""
    # Who stands in a checkout of this package finds the built-in file itself.
    built_in = _built_in_entries()
    new = {
        table: {name: entry for name, entry in getattr(candidate.own, table).items() if of_ours.get(name) != entry}
        for table in SINGULAR
        for of_ours in [getattr(built_in, table)]
    }
    return list(dict.fromkeys(_wants(candidate.path, Registry(**new)))) if any(new.values()) else []


def _wants(path: Path, own: Registry) -> Iterator[Want]:
    folder = path.parent.resolve()
    built_in = _built_in_entries()
    plugins = Plugins(built_in)
    if path.resolve().parent != folder:
        yield Want("file", "", "", f"{path.name} is a link to {str(path.resolve())!r}")
    names = {kind: set(plugins.offers[kind]) for kind in ("adapter", "probe", "metric")}
    names |= {"model": set(built_in.models), "study": set(plugins.studies), "default": set(built_in.defaults)}
    for table, kind in SINGULAR.items():
        for name in getattr(own, table):
            if name in names[kind] or (kind == "model" and name.partition(":")[0] in names["adapter"]):
                says = f"takes the place of that of {BUILT_IN} or of an installed package"
                yield Want("name", kind, name, says)
    for table in ("adapters", "probes", "metrics"):
        for name, plugged in getattr(own, table).items():
            yield Want("code", SINGULAR[table], name, f"runs Python code: {plugged.target}")
    judge = Judge(folder, plugins, _added(built_in, own))
    for name, model in own.models.items():
        if model.adapter in own.adapters:
            yield Want("code", "model", name, f"uses the adapter {model.adapter!r} of this file")
        else:
            yield from (Want(effect.kind, "model", name, effect.sentence) for effect in judge.model(model))
    for name, study in own.studies.items():
        yield from (Want(effect.kind, "study", name, effect.sentence) for effect in judge.study(study))


def allowed_entries(candidate: Candidate) -> tuple[Registry, list[Want]]:
    """Return the entries of a registry that may be read unasked, and why the others may not.

    What uses an entry that is left out is left out, too.
    """
    wants = wants_of(candidate)
    if any(not want.entry for want in wants):
        return Registry(), wants
    local, left_out = candidate.own, {(want.table, want.entry) for want in wants}
    for name, study in local.studies.items():
        used = [("probe", study.probe), *(("metric", metric) for metric in study.metrics)]
        used += [("model", split_name(model)[0]) for model in study.roles.values()]
        if ("study", name) not in left_out and (missing := [part for part in used if part in left_out]):
            kind, missed = missing[0]
            wants.append(Want("name", "study", name, f"uses the {kind} {missed!r}, which is left out"))
            left_out.add(("study", name))
    entries = {
        table: {name: entry for name, entry in getattr(local, table).items() if (kind, name) not in left_out}
        for table, kind in SINGULAR.items()
    }
    # Paths are made absolute last: that imports the packages which they name.
    return settled(Registry(**entries), candidate.path.resolve().parent), wants


def ensure_hub_name(name: str, entry: ModelEntry) -> None:
    """Refuse a folder of the working directory that has the hub name of a built-in model, and would be read instead.

    Raises:
        UsageError: naming the folder.
    """
    model = entry.settings.get("model")
    if not isinstance(model, str) or Path(model).is_absolute() or not Path(model).exists():
        return
    if entry == built_in_registry().models.get(name):
        raise UsageError(
            f"the folder {model!r} here would be read in the place of the built-in model {name!r}. Rename it, or "
            f"name the folder itself: --model {entry.adapter}:./{model}",
            code="model.shadowed",
        )


def is_trusted(candidate: Candidate) -> bool:
    """Return whether the user has trusted this file, with this content, at this place."""
    return is_remembered(candidate.path, candidate.sha256)


def is_remembered(path: Path, digest: str) -> bool:
    """Return whether the user has trusted what a file at this place holds, by its digest."""
    return trusted_files().get(_place(path.absolute())) == digest


def remember(path: Path, digest: str) -> None:
    """Remember that the user trusts what a file at this place holds.

    Raises:
        UsageError: the user's configuration cannot be written.
    """
    _write(trusted_files() | {_place(path.absolute()): digest})


def user_key() -> bytes:
    """Return the key by which this user's own records are told from those of others; it is made at its first use.

    Raises:
        UsageError: the user's configuration cannot be written.
    """
    path = config_folder() / USER_KEY
    try:
        if len(key := path.read_bytes()) == KEY_BYTES:
            return key
    except OSError:
        pass
    key = secrets.token_bytes(KEY_BYTES)
    with replaced_whole(path) as beside:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.touch(mode=0o600)
        beside.write_bytes(key)
    return key


def revoke(path: Path) -> bool:
    """Forget that the user trusts a file; return whether it was trusted.

    Raises:
        UsageError: the user's configuration cannot be written.
    """
    files = trusted_files()
    if files.pop(_place(path.absolute()), None) is None:
        return False
    _write(files)
    return True


def trusted_files() -> dict[str, str]:
    """Return the digest of each trusted file by its path; none if the configuration cannot be read."""
    try:
        return msgspec.json.decode((config_folder() / TRUSTED).read_bytes(), type=dict[str, str])
    except (OSError, UsageError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the user's configuration.

    Raises:
        UsageError: the environment names none.
    """
    return user_folder("your configuration", HOME, ("XDG_CONFIG_HOME", "APPDATA"), ".config", environment)


def _write(known: dict[str, str]) -> None:
    folder = config_folder()
    with replaced_whole(folder / TRUSTED) as beside:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(known, order="sorted")))


def _place(path: Path) -> str:
    return str(path.parent.resolve() / path.name)
