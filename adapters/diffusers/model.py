"""Load a diffusers text-to-image pipeline; refuse one that would give other images than requested."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ...core.contracts.errors import MissingExtraError, ModelLoadError, UnknownNameError, UsageError
from ...core.contracts.steps import step
from ..hf.files import CONFIG, Source
from ..hf.hub import one_line
from ..shared.torch import DType, choose_device, quiet_loading, require_torch
from .files import components, fetch_files

EXTRA = "diffusion"
NEEDED = ("prompt", "generator", "width", "height", "num_inference_steps", "guidance_scale", "output_type")

UNSEEDED = "DPMSolverSDEScheduler"
DISTILLED = frozenset({"LCMScheduler", "TCDScheduler"})
"""Schedulers for distilled weights: they fit pipelines of the Karras family, which do not list them."""


class Recipe(NamedTuple):
    """The pipeline to load and its settings."""

    source: Source
    vae: Source | None
    """A decoder in place of the pipeline's own."""
    scheduler: str | None
    checked: bool
    """Whether the pipeline's safety checker is used."""
    dtype: DType
    device: str


class Loaded(NamedTuple):
    """A pipeline on its device."""

    pipeline: Any
    device: str
    accepts: frozenset[str]
    """Names of the arguments its call takes."""


def require_diffusers(what: str) -> None:
    """Raise `MissingExtraError` unless diffusers and what it needs are installed; imports nothing."""
    require_torch(what, EXTRA)
    if any(find_spec(package) is None for package in ("diffusers", "PIL")):
        raise MissingExtraError(what, EXTRA)


def check_scheduler(name: str) -> None:
    """Refuse a scheduler that does not exist or whose noise cannot be seeded.

    Raises:
        UnknownNameError: diffusers has none of this name; the nearest is named.
        UsageError: its noise does not follow an image's seed.
    """
    with quiet_loading():
        import diffusers.schedulers

    known = [kind for kind in dir(diffusers.schedulers) if kind.endswith("Scheduler") and not kind.startswith("Flax")]
    if name not in known:
        raise UnknownNameError("scheduler", name, known)
    if name == UNSEEDED:
        raise UsageError(f"scheduler {_unseeded(name)}", code="model.scheduler")


def left_out(recipe: Recipe) -> frozenset[str]:
    """Return the components of the pipeline that are not loaded from its own files."""
    return frozenset(
        name for name, out in (("vae", recipe.vae is not None), ("safety_checker", not recipe.checked)) if out
    )


def load_pipeline(recipe: Recipe) -> Loaded:
    """Load a pipeline whole, with the scheduler and decoder asked for, on its device.

    Raises:
        ModelLoadError: no text-to-image pipeline, weights broken or missing, or a scheduler that does not fit.
    """
    import diffusers

    device = choose_device(recipe.device)
    name, kind = recipe.source.name, recipe.source.config["_class_name"]
    with quiet_loading(), quiet_diffusers():
        cls = getattr(diffusers, kind, None)
        accepts = _arguments(cls, name, kind)
        folder = fetch_files(recipe.source, components(recipe.source.config, left_out(recipe)))
        parts = _load_parts(folder, recipe)
        try:
            with step(f"load the weights of {name}"):
                pipeline = cls.from_pretrained(str(folder), **parts, local_files_only=True)  # type: ignore[union-attr]
        # Configurations of components fail in every way that their classes can.
        except Exception as error:
            raise ModelLoadError(
                f"cannot load {name!r} as {kind}: {one_line(error)}", code="model.unloadable"
            ) from error
        _set_scheduler(pipeline, recipe)
        pipeline.set_progress_bar_config(disable=True)
        return Loaded(pipeline.to(device), device, accepts)


@contextmanager
def quiet_diffusers() -> Iterator[None]:
    """Keep the warnings and progress bars of diffusers off the console."""
    from diffusers.utils import logging as chatter

    level, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity(logging.CRITICAL)
    chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(level)
        if bars:
            chatter.enable_progress_bar()


def _arguments(cls: Any, name: str, kind: str) -> frozenset[str]:
    parameters = frozenset(inspect.signature(cls.__call__).parameters) if isinstance(cls, type) else frozenset[str]()
    missing = [needed for needed in NEEDED if needed not in parameters]
    if missing or parameters & {"image", "video", "num_frames"}:
        raise ModelLoadError(
            f"{name!r} is not a text-to-image pipeline that this diffusers knows: its class is {kind}.",
            code="model.kind",
        )
    return parameters


def _load_parts(folder: Path, recipe: Recipe) -> dict[str, Any]:
    index = recipe.source.config
    parts: dict[str, Any] = {}
    # All classes are found before any file is read: a tokenizer or scheduler could bring code of its own too.
    found = {name: _part_class(index[name], name, recipe) for name in components(index, left_out(recipe))}
    for part, cls in found.items():
        if (folder / part / CONFIG).is_file():
            parts[part] = _load_part(folder / part, cls, recipe)
    if recipe.vae is not None:
        kind = recipe.vae.config.get("_class_name", "AutoencoderKL")
        cls = _part_class(("diffusers", kind), "vae", recipe)
        parts["vae"] = _load_part(fetch_files(recipe.vae), cls, recipe)
    if not recipe.checked and "safety_checker" in index:
        parts |= {"safety_checker": None, "requires_safety_checker": False}
    return parts


def _load_part(folder: Path, cls: Any, recipe: Recipe) -> Any:
    import torch

    shown = f"{folder.name!r} of {recipe.source.name!r}"
    try:
        part, info = cls.from_pretrained(
            str(folder),
            torch_dtype=getattr(torch, recipe.dtype),
            use_safetensors=None if recipe.source.allow_pickle else True,
            local_files_only=True,
            output_loading_info=True,
        )
    # Broken weights raise whatever their reader raises.
    except Exception as error:
        raise ModelLoadError(
            f"cannot load {shown} as {cls.__name__}: {one_line(error)}", code="model.unloadable"
        ) from error
    tensors = part.state_dict(keep_vars=True)
    missing = set(info["missing_keys"])
    loaded = {id(tensor) for key, tensor in tensors.items() if key not in missing}
    # A key may be reported although its tensor is tied to one that was loaded.
    lost = sorted(key for key in missing if key in tensors and id(tensors[key]) not in loaded)
    lost += [str(key[0]) for key in info.get("mismatched_keys") or ()]
    if lost:
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise ModelLoadError(
            f"the weights of {shown} lack {', '.join(lost[:3])}{more}: images would be random.",
            code="model.weights-missing",
        )
    return part.eval()


def _part_class(place: Sequence[str], part: str, recipe: Recipe) -> Any:
    """Find the class of a component in diffusers or Transformers, and nowhere else; the index was checked."""
    library, kind = place
    module = library if library in ("diffusers", "transformers") else f"diffusers.pipelines.{library}"
    try:
        found = getattr(importlib.import_module(module), kind)
        if not (isinstance(found, type) and issubclass(found, _loadable())):
            raise AttributeError(kind)
        return found
    except (ImportError, AttributeError):
        raise ModelLoadError(
            f"{part!r} of {recipe.source.name!r} is of the class {library}.{kind}, which neither diffusers nor "
            "Transformers has here. If it is its own code, it is not run; if it is newer than the packages, upgrade "
            "them.",
            code="model.kind",
        ) from None


def _loadable() -> tuple[type, ...]:
    """Return the base classes of all that a pipeline is made of."""
    import diffusers
    import transformers
    from transformers.feature_extraction_utils import FeatureExtractionMixin
    from transformers.image_processing_utils import BaseImageProcessor

    own = (diffusers.ModelMixin, diffusers.SchedulerMixin)
    texts = (transformers.PreTrainedModel, transformers.PreTrainedTokenizerBase, transformers.ProcessorMixin)
    return (*own, *texts, FeatureExtractionMixin, BaseImageProcessor)


def _set_scheduler(pipeline: Any, recipe: Recipe) -> None:
    if recipe.scheduler is not None:
        pipeline.scheduler = _make_scheduler(recipe.scheduler, pipeline.scheduler, recipe.source.name)
    kind = type(pipeline.scheduler).__name__
    if kind == UNSEEDED:
        raise ModelLoadError(f"the pipeline's own scheduler {_unseeded(kind)}", code="model.scheduler")


def _make_scheduler(name: str, own: Any, model: str) -> Any:
    import diffusers

    fitting = {*own.compatibles, type(own)}
    able = {kind.__name__ for kind in fitting} | DISTILLED
    # A scheduler that names no others says nothing about what fits it.
    if len(fitting) > 1 and name not in able:
        raise ModelLoadError(
            f"scheduler {name!r} does not fit {model!r}; these do: {', '.join(sorted(able))}.", code="model.scheduler"
        )
    try:
        return getattr(diffusers, name).from_config(own.config)
    # Some schedulers need packages of their own; others take no such configuration.
    except Exception as error:
        raise ModelLoadError(f"cannot use scheduler {name!r}: {one_line(error)}", code="model.scheduler") from error


def _unseeded(name: str) -> str:
    return f"{name!r} draws noise that does not depend on the seed of an image. Set another scheduler."
