"""The files of a sentence-transformers model and their digest, known before any of them is loaded.

Such a model is a chain of modules (a Transformer, a pooling, perhaps a projection), each in a folder that
`modules.json` names; a change in any of them changes the vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from ....core.contracts.errors import ModelLoadError
from ..files import CONFIG, digest_files, model_files, read_config
from ..hub import download, download_file, one_line, pin_file
from .allowed import MODULES, Module, strange_classes, strange_settings

SETTINGS = "config_sentence_transformers.json"
READ = (".json", ".txt", ".model", ".jinja", ".safetensors")
PICKLED = (".bin", ".pt", ".pth", ".pkl")


class EncoderSource(msgspec.Struct, frozen=True):
    """Source of a model's files, and the digest or commit that pins them."""

    name: str
    """A hub name, or the base name of the directory."""
    digest: str
    """`sha256:...` over a directory's files, or the commit of a hub name."""
    modules: tuple[Module, ...]
    folder: Path | None
    """The directory; None for a hub name, whose files are fetched at the first use."""
    prompts: dict[str, str] | None
    """Prompts by name; None if they are not known before the model is fetched."""
    allow_pickle: bool = False
    trust_remote_code: bool = False
    config: dict[str, Any] = {}
    """What the config.json of its Transformer says; empty if it has none."""


def find_encoder(
    model: str, revision: str | None = None, *, allow_pickle: bool = False, trust_remote_code: bool = False
) -> EncoderSource:
    """Find a sentence-transformers model by directory or hub name and say what pins it.

    Raises:
        ModelLoadError: neither a directory nor a reachable hub name, no sentence-transformers model, incomplete, or
            with modules whose code is not trusted.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        path = pin_file(model, revision, MODULES)
        modules = _read_modules(path, model, trust_remote_code)
        config = _config(modules, lambda name: download_file(model, path.parent.name, name))
        return EncoderSource(model, path.parent.name, modules, None, None, allow_pickle, trust_remote_code, config)
    if revision is not None:
        raise ModelLoadError(
            f"revision {revision!r} is given for the directory {model!r}; remove it: only hub names have one.",
            code="model.revision",
        )
    if not (folder / MODULES).is_file():
        raise ModelLoadError(
            f"{model!r} contains no {MODULES}, so it is not a sentence-transformers model. "
            "Give one that was saved by SentenceTransformer.save, which also says how its tokens are pooled.",
            code="model.kind",
        )
    modules = _read_modules(folder / MODULES, model, trust_remote_code)
    config = _config(modules, lambda name: folder / name)
    source = EncoderSource(
        folder.resolve().name, "", modules, folder, read_prompts(folder), allow_pickle, trust_remote_code, config
    )
    return msgspec.structs.replace(source, digest=_digest(folder, encoder_files(folder, source)))


def fetch_encoder(source: EncoderSource) -> Path:
    """Return the directory that holds the model's files, downloading a hub model's first."""
    if source.folder is not None:
        return source.folder
    endings = (*READ, *(PICKLED if source.allow_pickle else ()), *((".py",) if source.trust_remote_code else ()))
    folder = download(source.name, source.digest, [f"*{ending}" for ending in endings], ["onnx/*", "openvino/*"])
    encoder_files(folder, source)
    return folder


def encoder_files(folder: Path, source: EncoderSource) -> list[Path]:
    """List the files of `folder` that change the model's answers: its own settings and those of every module.

    Raises:
        ModelLoadError: a module lacks its files, has only weights that may not be read, or names code.
    """
    if not source.trust_remote_code and (strange := list(strange_settings(folder, source.modules))):
        raise _own_code(source.name, strange[0])
    kept = {path for path in (folder / MODULES, folder / SETTINGS) if path.is_file()}
    for module in source.modules:
        place = folder / module.path
        if not place.is_dir():
            # Git and the hub keep no empty folders; a module without settings has nothing else.
            continue
        if module.type.endswith(".Transformer"):
            model_files(place, allow_pickle=source.allow_pickle, name=f"{source.name}/{module.path}".rstrip("/"))
        inside = place.iterdir() if module.path in {"", "."} else place.rglob("*")
        kept.update(_readable([path for path in inside if path.is_file()], source))
    return sorted(kept)


def _readable(there: list[Path], source: EncoderSource) -> Iterable[Path]:
    yield from (path for path in there if path.suffix in READ and not path.name.startswith("README"))
    if source.trust_remote_code:
        yield from (path for path in there if path.suffix == ".py")
    pickled = [path for path in there if path.suffix in PICKLED and path.stem.startswith(("pytorch_model", "model"))]
    if not pickled or any(path.suffix == ".safetensors" for path in there):
        return
    if not source.allow_pickle:
        raise ModelLoadError(
            f"{source.name!r} contains only pickled weights for a module ({pickled[0].name}), which can run code when "
            "read. Save it as safetensors (model.save(directory)), or set allow_pickle = true if you trust it.",
            code="model.pickled",
        )
    yield from pickled


def strange_in(model: str) -> list[str]:
    """Return the classes that the files of a model on this machine name and that are not allowed."""
    folder = Path(model).expanduser()
    try:
        modules = _read_modules(folder / MODULES, model, trusted=True) if (folder / MODULES).is_file() else ()
    except ModelLoadError:
        return []  # loading reports it
    return [*strange_classes(modules), *strange_settings(folder, modules)]


def _read_modules(path: Path, name: str, trusted: bool) -> tuple[Module, ...]:
    try:
        modules = msgspec.json.decode(path.read_bytes(), type=tuple[Module, ...])
    except (OSError, msgspec.DecodeError) as error:
        raise ModelLoadError(f"cannot read {MODULES} of {name!r}: {one_line(error)}", code="model.config") from error
    if not modules:
        raise ModelLoadError(f"{MODULES} of {name!r} names no module.", code="model.config")
    for module in modules:
        if Path(module.path).is_absolute() or ".." in Path(module.path).parts:
            raise ModelLoadError(
                f"{MODULES} of {name!r} names a folder outside the model: {module.path!r}.", code="model.config"
            )
    if not trusted and (strange := strange_classes(modules)):
        raise _own_code(name, strange[0])
    return modules


def _own_code(name: str, named: str) -> ModelLoadError:
    return ModelLoadError(
        f"model {name!r} names a class that is none of sentence-transformers' own modules ({named}), which does not "
        "run without permission. Read its code, then set trust_remote_code = true.",
        code="model.own-code",
    )


def read_prompts(folder: Path) -> dict[str, str]:
    """Return the prompts that a model's own settings name.

    Raises:
        ModelLoadError: the settings cannot be read.
    """
    path = folder / SETTINGS
    try:
        settings: Any = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise ModelLoadError(
            f"cannot read {SETTINGS} of {folder.name!r}: {one_line(error)}", code="model.config"
        ) from error
    return dict(settings.get("prompts") or {}) if isinstance(settings, dict) else {}


def _config(modules: tuple[Module, ...], find: Callable[[str], Path | None]) -> dict[str, Any]:
    place = next((module.path for module in modules if module.type.endswith(".Transformer")), None)
    path = None if place is None else find(f"{place}/{CONFIG}".lstrip("/"))
    return read_config(path) if path is not None and path.is_file() else {}


def _digest(folder: Path, files: Iterable[Path]) -> str:
    """Hash paths inside the folder, and contents: several modules have a file of one name."""
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(folder).as_posix()}\0{digest_files([path])}\n".encode())
    return f"sha256:{whole.hexdigest()}"
