"""Models named by their place, `--model ./folder`: which adapter reads them, by what their own files say.

Each adapter says which files it reads (`ModelAdapter.recognise`). A name that begins with `./`, `../`, `/` or `~` is a
place; any other is a name of the registry, or `ADAPTER:MODEL`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..contracts.adapter import ModelAdapter
from ..contracts.errors import DataError, ModelLoadError, PrejudgeError
from ..contracts.inputs import ensure_file
from ..contracts.model_files import ModelFiles
from .plugins import Plugins, blamed
from .registry import here
from .variants import split_name

PLACES = ("./", "../", "/", "~")


class Candidate(NamedTuple):
    """One way to read the files of a model."""

    name: str
    """`ADAPTER:MODEL`."""
    because: str


def is_place(name: str) -> bool:
    """Return whether the name of a model is a path."""
    return name in (".", "..") or name.startswith(PLACES)


def candidates(place: str, plugins: Plugins) -> Sequence[Candidate]:
    """Return the ways to read the model in a folder or file, in the order of the adapters.

    Raises:
        ModelLoadError: there is no such place, or no adapter reads what is there.
        DataError: a description in the folder cannot be read.
    """
    path, settings = (place, "") if here(place) else split_name(place)
    suffix = f"[{settings}]" if settings else ""
    files = ModelFiles(path.rstrip("/") or path)
    _ensure_there(files)
    matches, broken = [], None
    for adapter in sorted(plugins.offers["adapter"]):
        try:
            kind: type[ModelAdapter] = plugins.load("adapter", adapter)
            with blamed(plugins.offers["adapter"][adapter].plugin, f"adapter {adapter!r}"):
                matches += [
                    Candidate(f"{adapter}:{match.model}{suffix}", match.because) for match in kind.recognise(files)
                ]
        except DataError as error:
            broken = error
        except PrejudgeError:
            continue  # a broken plugin is reported where it is used
    if matches:
        return matches
    if broken is not None:
        raise broken
    raise _unrecognised(files)


def choose(place: str, found: Sequence[Candidate], why: str = "") -> Candidate:
    """Return the only candidate.

    Raises:
        ModelLoadError: there are several; it lists them.
    """
    if len(found) == 1:
        return found[0]
    names = [candidate.name for candidate in found]
    listed = ", ".join(f"{candidate.name} ({candidate.because})" for candidate in found)
    raise ModelLoadError(
        f"{place!r} can be read in {len(found)} ways{why}: {listed}. Name one of them, such as --model {names[0]}.",
        code="model.ambiguous",
        place=place,
        candidates=names,
    )


def _ensure_there(files: ModelFiles) -> None:
    try:
        is_there = files.place.exists()
    except (OSError, ValueError, RuntimeError):  # a name that is too long, a NUL, an unknown user of ~
        is_there = False
    if not is_there:
        raise ModelLoadError(f"there is no folder or file {files.path!r}.", code="model.not-found", place=files.path)
    if not files.place.is_dir():
        try:
            ensure_file(files.place, most=1 << 50)
        except OSError as error:
            raise ModelLoadError(
                f"{files.path!r} is no model: {error.strerror}.", code="model.unrecognised", place=files.path
            ) from None


def _unrecognised(files: ModelFiles) -> PrejudgeError:
    if files.is_file:
        mend = f"Name the folder that it is in: --model {files.path.rpartition('/')[0] or '.'}"
    elif inner := _models_below(files):
        mend = f"Models may be in folders below it: {', '.join(inner)}."
    else:
        mend = f"{_said(files)} To name an adapter yourself: --model ADAPTER:{files.path}"
    return ModelLoadError(
        f"no adapter recognises the model in {files.path!r}. {mend}", code="model.unrecognised", place=files.path
    )


def _said(files: ModelFiles) -> str:
    if files.architectures:
        return f"Its config.json names {', '.join(files.architectures)}."
    if base := files.settings("adapter_config.json").get("base_model_name_or_path"):
        return f"It is an adapter (PEFT) of the model {base!r}, of a kind that its files do not tell."
    shown = ", ".join(files.names[:5]) or "no file"
    return f"It holds {shown}{' ...' if len(files.names) > 5 else ''}."


def _models_below(files: ModelFiles) -> list[str]:
    try:
        below = sorted(path for path in files.place.iterdir() if (path / "config.json").is_file())
    except OSError:
        return []
    return [f"{files.path.rstrip('/')}/{path.name}" for path in below[:5]]
