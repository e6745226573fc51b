"""`diffusers`: images of prompts by any text-to-image pipeline of diffusers, local or from the hub."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar

import msgspec

from ...core.contracts import OptionEffect, Options, harmless
from ...core.contracts.abilities import Abilities
from ...core.contracts.adapter import Identity, Limits
from ...core.contracts.errors import DataError, ModelError, PermanentError
from ...core.contracts.model_files import ModelFiles, Recognised
from ...core.contracts.records import Draw, Drawing
from ..shared.threaded import ThreadedAdapter
from ..shared.torch import DType, release_memory
from .drawer import Drawer, Filtered, Outcome, Style
from .files import INDEX, components, find_part, find_pipeline, strange_parts
from .model import Loaded, Recipe, check_scheduler, load_pipeline, require_diffusers

VERSION = "1"
Positive = Annotated[int, msgspec.Meta(ge=1)]
NOWHERE = "an image cannot be stored: give the adapter a store (adapter.services)."


class DiffusersOptions(Options, frozen=True, kw_only=True):
    """Settings of `diffusers`."""

    option_effects = {
        "model": "file",
        "vae": "file",
        "allow_pickle": "code",
        **harmless(
            "revision dtype device scheduler steps guidance prompt_suffix negative_prompt safety_checker "
            "threads batch_items"
        ),
    }

    model: str
    """A directory, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Branch, tag or commit of a hub name; None takes the main branch. The resolved commit is recorded."""
    dtype: DType = "float32"
    """Precision of weights and activations: `float32`, `bfloat16`, `float16`."""
    device: str = "auto"
    """`cuda`, `cuda:1`, `mps`, `cpu`; `auto` takes the first that is available."""
    scheduler: str | None = None
    """Class name of a scheduler of diffusers, such as `DPMSolverMultistepScheduler`; None keeps the pipeline's own."""
    vae: str | None = None
    """Directory or hub name of another decoder; None keeps the pipeline's own."""
    steps: Positive | None = None
    """Denoising steps of requests that set none; None takes the pipeline's default."""
    guidance: float | None = None
    """Guidance scale of requests that set none; None takes the pipeline's default."""
    prompt_suffix: str = ""
    """Text appended unchanged to every prompt; begin it with a comma or a space."""
    negative_prompt: str | None = None
    """Negative prompt of every image."""
    safety_checker: bool = True
    """Use the pipeline's safety checker, if it has one."""
    allow_pickle: bool = False
    """Read pickled weights if there are no safetensors; a pickle can run code when read."""
    threads: Positive | None = None
    """Number of CPU threads; None takes torch's default."""
    batch_items: Positive = 1
    """Images per forward pass. More than one is faster on an accelerator, and lets rounding differ with the batch."""

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do, and what the components of a pipeline on this machine would."""
        yield from super().list_effects()
        try:
            named = strange_parts(ModelFiles(self.model).settings(INDEX))
        except DataError:
            return  # loading reports it
        for one in named:
            says = f"imports the class {one}, which {INDEX} of {self.model!r} names"
            yield OptionEffect("code", "model", self.model, says, "such a pipeline is refused")


class Diffusers(ThreadedAdapter):
    """A text-to-image pipeline of diffusers, with one seeded generator per image."""

    options: ClassVar[type[msgspec.Struct]] = DiffusersOptions

    def __init__(self, options: DiffusersOptions) -> None:
        """Check the pipeline's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch, Transformers, diffusers or Pillow is not installed.
            UsageError: diffusers has no such scheduler, or its noise cannot be seeded.
            ModelLoadError: the pipeline is not there, incomplete, or of another kind.
        """
        require_diffusers("adapter 'diffusers'")
        if options.scheduler is not None:
            check_scheduler(options.scheduler)
        self._options = options
        self._recipe = _recipe(options)
        self.identity = _identity(options, self._recipe)
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start("diffusers")
        self._engine: tuple[Loaded, Drawer] | None = None

    @classmethod
    def abilities(cls, options: DiffusersOptions) -> Abilities:
        """Return what the class can do; nothing where a folder is no pipeline."""
        able = super().abilities(options)
        files = ModelFiles(options.model)
        if not files.names or INDEX in files.names:
            return able
        why = f"{options.model!r} has no {INDEX}, so it is not a diffusers pipeline."
        return able.without(dict.fromkeys(able.operations, why))

    @classmethod
    def recognise(cls, files: ModelFiles) -> Sequence[Recognised]:
        """Take folders of a diffusers pipeline."""
        return [Recognised(files.path, f"it has a {INDEX}")] if INDEX in files.names else []

    async def draw_batch(self, requests: Sequence[Draw]) -> Sequence[Drawing | ModelError]:
        """Draw images and store them; a request that cannot be drawn has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the pipeline cannot be loaded (first call).
        """
        self._open_worker()
        if self.services.keep is None:
            return [PermanentError(NOWHERE, code="request.no-image-store") for _ in requests]
        return [self._answer(outcome) for outcome in await self._run(self._draw, requests)]

    def _draw(self, requests: Sequence[Draw], stop: threading.Event) -> list[Outcome]:
        _, drawer = self._engine = self._engine or self._load()
        return drawer.draw(requests, stop)

    def _answer(self, outcome: Outcome) -> Drawing | ModelError:
        if isinstance(outcome, Filtered):
            return Drawing(image=None, status="filtered")
        if isinstance(outcome, ModelError):
            return outcome
        return (
            Drawing(image=self.services.keep(outcome, "image/png"))
            if self.services.keep
            else PermanentError(NOWHERE, code="request.no-image-store")
        )

    def _load(self) -> tuple[Loaded, Drawer]:
        given = self._options
        if given.threads is not None:
            import torch

            torch.set_num_threads(given.threads)
        style = Style(given.steps, given.guidance, given.prompt_suffix, given.negative_prompt, given.batch_items)
        loaded = load_pipeline(self._recipe)
        return loaded, Drawer(loaded, style)

    def _free(self) -> None:
        if self._engine is not None:
            device = self._engine[0].device
            self._engine = None
            release_memory(device)


def _recipe(options: DiffusersOptions) -> Recipe:
    without = [name for name, out in (("vae", options.vae), ("safety_checker", not options.safety_checker)) if out]
    source = find_pipeline(options.model, options.revision, allow_pickle=options.allow_pickle, without=without)
    vae = None if options.vae is None else find_part(options.vae, allow_pickle=options.allow_pickle)
    checked = options.safety_checker and "safety_checker" in components(source.config)
    return Recipe(source, vae, options.scheduler, checked, options.dtype, options.device)


def _identity(options: DiffusersOptions, recipe: Recipe) -> Identity:
    return Identity(
        adapter="diffusers",
        version=VERSION,
        model=recipe.source.name if recipe.vae is None else f"{recipe.source.name} with {recipe.vae.name}",
        digest=recipe.source.digest,
        pinned=True,
        settings={
            "dtype": options.dtype,
            "scheduler": options.scheduler,
            "vae": None if recipe.vae is None else recipe.vae.digest,
            "steps": options.steps,
            "guidance": options.guidance,
            "prompt_suffix": options.prompt_suffix,
            "negative_prompt": options.negative_prompt,
            "safety_checker": recipe.checked,
        },
    )
