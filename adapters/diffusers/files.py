"""The files of a diffusers pipeline and their digest, known before torch is imported or weights are read.

A pipeline is a directory with model_index.json and one folder per component, or a hub name that is pinned to the
commit it resolves to.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.steps import hashing
from ..hf.files import CONFIG, Source, read_config
from ..hf.hub import download, pin_file

INDEX = "model_index.json"
SETTINGS = ("*.json", "*.txt", "*.model")
SAFE = tuple(f"{stem}{end}.safetensors" for stem in ("diffusion_pytorch_model", "model") for end in ("", "-*-of-*"))
PICKLED = (*(f"{stem}{end}.bin" for stem in ("diffusion_pytorch_model", "pytorch_model") for end in ("", "-*-of-*")),)

PARTS = {
    "deepfloyd_if": ("IFSafetyChecker", "IFWatermarker"),
    "flux": ("ReduxImageEncoder",),
    "kandinsky": ("MultilingualCLIP",),
    "latent_diffusion": ("LDMBertModel",),
    "paint_by_example": ("PaintByExampleImageEncoder",),
    "stable_diffusion": ("CLIPImageProjection", "StableDiffusionSafetyChecker", "StableUnCLIPImageNormalizer"),
    "stable_diffusion_safe": ("SafeStableDiffusionSafetyChecker",),
    "unclip": ("UnCLIPTextProjModel",),
    "wuerstchen": ("PaellaVQModel", "WuerstchenDiffNeXt", "WuerstchenPrior"),
}
"""Components that the folder of a pipeline in diffusers has, by its name."""
_CLASS = re.compile(r"[A-Z]\w+", re.ASCII)


def find_pipeline(
    model: str, revision: str | None = None, *, allow_pickle: bool = False, without: Collection[str] = ()
) -> Source:
    """Find a pipeline by directory or hub name and say what pins it; `without` names components not to be loaded.

    Raises:
        ModelLoadError: neither a directory nor a reachable hub name, or no pipeline, or one that lacks needed files.
    """
    source = _source(model, revision, INDEX, allow_pickle)
    _check_index(source)
    if source.folder is None:
        return source
    files = {INDEX: source.folder / INDEX}
    for part in components(source.config, without):
        files |= {f"{part}/{path.name}": path for path in part_files(source, source.folder / part)}
    return Source(source.name, digest_named(files), source.config, source.folder, allow_pickle)


def find_part(model: str, *, allow_pickle: bool = False) -> Source:
    """Find a separate component, such as a VAE, by directory or hub name.

    Raises:
        ModelLoadError: as `find_pipeline`.
    """
    source = _source(model, None, CONFIG, allow_pickle)
    if source.folder is None:
        return source
    files = {path.name: path for path in part_files(source, source.folder)}
    return Source(source.name, digest_named(files), source.config, source.folder, allow_pickle)


def fetch_files(source: Source, parts: Collection[str] = ()) -> Path:
    """Return the directory with a pipeline's components, or with a separate part, downloading a hub name's first."""
    if source.folder is not None:
        return source.folder
    names = (*SETTINGS, *SAFE, *(PICKLED if source.allow_pickle else ()))
    wanted = [INDEX, *(f"{part}/{name}" for part in parts for name in names)] if parts else list(names)
    folder = download(source.name, source.digest, wanted)
    for part in parts or (".",):
        part_files(source, folder / part)
    return folder


def components(index: Mapping[str, Any], without: Collection[str] = ()) -> list[str]:
    """Return the names of a pipeline's components, those left empty and those in `without` excepted."""
    there = (name for name, value in index.items() if isinstance(value, list) and value and value[0] is not None)
    return sorted(name for name in there if name not in without)


def strange_parts(index: Mapping[str, Any]) -> list[str]:
    """Return the classes of a pipeline's components that are none of diffusers, Transformers and `PARTS`."""
    places = [place for name in components(index) if (place := index[name])]
    return [".".join(map(str, place)) for place in places if not _is_allowed(place)]


def _is_allowed(place: Sequence[Any]) -> bool:
    match place:
        case ["diffusers" | "transformers", str(name)]:
            return _CLASS.fullmatch(name) is not None
        case [str(module), str(name)]:
            return name in PARTS.get(module, ())
    return False


def part_files(source: Source, folder: Path) -> list[Path]:
    """List the files of one component that change the images, sorted by name.

    Raises:
        ModelLoadError: there is no such component, or no weight file that may be read.
    """
    shown = repr(f"{source.name}/{folder.name}")
    there = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    settings, safe, pickled = (_matching(there, patterns) for patterns in (SETTINGS, SAFE, PICKLED))
    if not settings:
        raise ModelLoadError(
            f"{shown} contains no configuration, although {INDEX} names it. Save the pipeline again.",
            code="model.files",
        )
    # Only models have a config.json: schedulers, tokenizers and processors name theirs otherwise.
    if not _matching(there, (CONFIG,)):
        return settings
    if not safe and pickled and not source.allow_pickle:
        raise ModelLoadError(
            f"{shown} contains only pickled weights ({pickled[0].name}), which can run code when read. Save it as "
            "safetensors (pipeline.save_pretrained(directory)), or set allow_pickle = true if you trust it.",
            code="model.pickled",
        )
    if not safe and not pickled:
        raise ModelLoadError(f"{shown} contains no weights ({SAFE[0]} or {SAFE[2]}).", code="model.weights-missing")
    return sorted({*settings, *(safe or pickled)})


def digest_named(files: Mapping[str, Path]) -> str:
    """Hash names within the pipeline, and contents: `sha256:` and 64 hex digits."""
    whole = hashlib.sha256()
    with hashing(files.values()):
        for name in sorted(files):
            with files[name].open("rb") as file:
                whole.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def _source(model: str, revision: str | None, index: str, allow_pickle: bool) -> Source:
    folder = Path(model).expanduser()
    if not folder.is_dir():
        path = pin_file(model, revision, index)
        return Source(model, path.parent.name, read_config(path), None, allow_pickle)
    if revision is not None:
        raise ModelLoadError(
            f"revision {revision!r} is given for the directory {model!r}; remove it: only hub names have one.",
            code="model.revision",
        )
    if not (folder / index).is_file():
        what = "diffusers pipeline" if index == INDEX else "diffusers model"
        raise ModelLoadError(f"{model!r} contains no {index}, so it is not a {what}.", code="model.files")
    return Source(folder.resolve().name, "", read_config(folder / index), folder, allow_pickle)


def _check_index(source: Source) -> None:
    kind = source.config.get("_class_name")
    if not isinstance(kind, str):
        raise ModelLoadError(
            f"{source.name!r} is not a pipeline of diffusers, or contains its own code, which is not run: its {INDEX} "
            f"gives the class {kind!r}.",
            code="model.kind",
        )
    if named := strange_parts(source.config):
        raise ModelLoadError(
            f"a component of {source.name!r} is of the class {named[0]}, which is not among those that may be loaded: "
            "models, schedulers and tokenizers of diffusers and Transformers. Code of a model's own is not run.",
            code="model.own-code",
        )
    # The names are those of folders.
    if odd := [name for name in components(source.config) if not name.isidentifier()]:
        raise ModelLoadError(
            f"{source.name!r} has a component {odd[0]!r}, which could be outside the model.", code="model.files"
        )


def _matching(paths: list[Path], patterns: tuple[str, ...]) -> list[Path]:
    return [path for path in paths if any(fnmatch(path.name, pattern) for pattern in patterns)]
