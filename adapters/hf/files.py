"""The files of a Transformers model and their digest, known before torch is imported or weights are read.

A model is a directory, or a name on the Hugging Face hub that is pinned to the commit it resolves to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import msgspec

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.steps import hashing
from .hub import download, download_file, one_line, pin_file

CONFIG = "config.json"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "*.model")
TOKENIZER_MORE = ("special_tokens_map.json", "added_tokens.json", "merges.txt", "vocab.*", "tokenizer*")
SAFE = ("model*.safetensors", "model.safetensors.index.json")
PICKLED = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
CODE = ("*.py",)
_CHUNK = 1 << 20


class Source(msgspec.Struct, frozen=True):
    """Source of a model's files, and the digest or commit that pins them."""

    name: str
    """A hub name, or the base name of the directory."""
    digest: str
    """`sha256:...` over a directory's files, or the commit of a hub name."""
    config: dict[str, Any]
    """What config.json says."""
    folder: Path | None
    """The directory; None for a hub name, whose files are fetched at the first use."""
    allow_pickle: bool = False
    trust_remote_code: bool = False
    more: tuple[str, ...] = ()
    """Patterns of further files that change this kind of model's answers."""


def find_source(
    model: str,
    revision: str | None = None,
    *,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    more: tuple[str, ...] = (),
) -> Source:
    """Find a model by directory or hub name and say what pins it.

    A directory is pinned by the sha256 over the names and contents of the configuration, tokenizer and weight files
    that would be loaded. Its place is no part of that: the same files under the same base name are the same model.

    Raises:
        ModelLoadError: neither a directory nor a reachable hub name, or a directory that lacks needed files.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        commit, config = _resolve(model, revision)
        return Source(model, commit, config, None, allow_pickle, trust_remote_code, more)
    if revision is not None:
        raise ModelLoadError(
            f"revision {revision!r} is given for the directory {model!r}; remove it: only hub names have one.",
            code="model.revision",
        )
    files = model_files(folder, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    there = [path for path in folder.iterdir() if path.is_file()]
    files = sorted({*files, *_matching(there, more)})
    config = read_config(folder / CONFIG)
    return Source(folder.resolve().name, digest_files(files), config, folder, allow_pickle, trust_remote_code, more)


def fetch(source: Source) -> Path:
    """Return the directory that holds the model's files, downloading a hub model's first."""
    if source.folder is not None:
        return source.folder
    wanted: tuple[str, ...] = (CONFIG, *TOKENIZER, *TOKENIZER_MORE, *SAFE, *source.more)
    wanted += (PICKLED if source.allow_pickle else ()) + (CODE if source.trust_remote_code else ())
    folder = download(source.name, source.digest, wanted)
    model_files(folder, allow_pickle=source.allow_pickle, name=source.name)
    return folder


def find_file(source: Source, name: str) -> Path | None:
    """Return one small file of a model, downloading it if need be; None if the model has none of that name.

    Raises:
        ModelLoadError: the hub does not answer for it.
    """
    if source.folder is not None:
        path = source.folder / name
        return path if path.is_file() else None
    return download_file(source.name, source.digest, name)


def model_files(
    folder: Path, *, allow_pickle: bool = False, trust_remote_code: bool = False, name: str | None = None
) -> list[Path]:
    """List the files of `folder` that change the model's answers, sorted by name.

    Raises:
        ModelLoadError: there is no configuration, no tokenizer, or no weight file that may be read.
    """
    shown = repr(name or str(folder))
    there = sorted(path for path in folder.iterdir() if path.is_file())
    if not _matching(there, (CONFIG,)):
        raise ModelLoadError(
            f"{shown} contains no {CONFIG}, so it is not a Transformers model directory.", code="model.kind"
        )
    if not _matching(there, TOKENIZER):
        raise ModelLoadError(
            f"{shown} contains no tokenizer (none of {', '.join(TOKENIZER)}). "
            "Save it there: tokenizer.save_pretrained(directory).",
            code="model.files",
        )
    weights = _weights(there, shown, allow_pickle)
    kept = {*_matching(there, (CONFIG, *TOKENIZER, *TOKENIZER_MORE)), *weights}
    if trust_remote_code:
        kept.update(_matching(there, CODE))
    return sorted(kept)


def digest_files(files: Iterable[Path]) -> str:
    """Hash names and contents: `sha256:` and 64 hex digits."""
    whole, paths = hashlib.sha256(), sorted(files, key=lambda path: path.name)
    with hashing(paths):
        for path in paths:
            whole.update(f"{path.name}\0{_digest_file(path)}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def read_config(path: Path) -> dict[str, Any]:
    """Read a config.json."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"cannot read {str(path)!r}: {one_line(error)}", code="model.config") from error
    if not isinstance(config, dict):
        raise ModelLoadError(
            f"{str(path)!r} contains no JSON object, so it is not a Transformers configuration.", code="model.config"
        )
    return config


def _weights(there: list[Path], shown: str, allow_pickle: bool) -> list[Path]:
    if safe := _matching(there, SAFE):
        return safe
    pickled = _matching(there, PICKLED)
    if pickled and allow_pickle:
        return pickled
    if pickled:
        raise ModelLoadError(
            f"{shown} contains only pickled weights ({pickled[0].name}), which can run code when read. Save it as "
            "safetensors (model.save_pretrained(directory)), or set allow_pickle = true if you trust it.",
            code="model.pickled",
        )
    raise ModelLoadError(f"{shown} contains no weights (model.safetensors).", code="model.weights-missing")


def matches(names: Iterable[str], patterns: tuple[str, ...]) -> list[str]:
    """Return the names of files that fit one of some patterns."""
    return [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]


def _matching(paths: Iterable[Path], patterns: tuple[str, ...]) -> list[Path]:
    return [path for path in paths if matches([path.name], patterns)]


def _digest_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _resolve(model: str, revision: str | None) -> tuple[str, dict[str, Any]]:
    path = pin_file(model, revision, CONFIG)
    return path.parent.name, read_config(path)
