"""Common parts of the adapters on Transformers: settings, the pinned model, loading at first call, errors, closing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec

from ...core.contracts import OptionEffect, Options, harmless
from ...core.contracts.abilities import Abilities
from ...core.contracts.adapter import Identity, Limits
from ...core.contracts.errors import PermanentError
from ...core.contracts.model_files import ModelFiles, Recognised
from ...core.contracts.records import Scalar
from ..shared.threaded import ThreadedAdapter
from ..shared.torch import DType, choose_device, float32_products, release_memory
from .checkpoint import PEFT, base_of, local_files, recognised, unlike
from .code import code_effects
from .described import described
from .files import Source, find_source
from .load import Kind, check_kind
from .loading import BITSANDBYTES, Attention, Loading, Placing, label, loading_settings, plan_loading

Positive = Annotated[int, msgspec.Meta(ge=1)]
E = TypeVar("E")
Q = TypeVar("Q")
R = TypeVar("R")


class HFOptions(Options, frozen=True, kw_only=True):
    """Settings that every adapter on Transformers has."""

    option_effects = {
        "model": "file",
        "quantization": "code",
        "peft": "file",
        "trust_remote_code": "code",
        "allow_pickle": "code",
        **harmless(
            "revision dtype tf32 device device_map attention peft_revision compile token_budget batch_items threads"
        ),
    }

    model: str
    """A directory, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Branch, tag or commit of a hub name; None takes the main branch. The resolved commit is recorded."""
    dtype: DType | Literal["auto"] = "float32"
    """Precision of weights and activations: `float32`, `bfloat16`, `float16`; `auto` takes that of the checkpoint's
    configuration. Probabilities: float32 or better."""
    tf32: bool = False
    """Let CUDA multiply float32 matrices in TF32: faster, about three significant digits."""
    device: str = "auto"
    """`cuda`, `cuda:1`, `mps`, `cpu`; `auto` takes the first that is available."""
    device_map: Placing | None = None
    """Spread the layers over all devices, by accelerate: `auto`, `balanced`, `balanced_low_0`, `sequential`."""
    attention: Attention | None = None
    """Attention of Transformers: `eager`, `sdpa`, `flash_attention_2`, ...; None takes the model's default."""
    quantization: dict[str, Any] = {}
    """Quantise the weights when they load, as Transformers writes it: {quant_method = "bitsandbytes", load_in_8bit =
    true}. Checkpoints that are quantised already (GPTQ, AWQ, FP8 ...) need no setting."""
    peft: str | None = None
    """A PEFT adapter, such as LoRA weights, put into the model: a directory or a hub name."""
    peft_revision: str | None = None
    """Branch, tag or commit of the PEFT adapter's hub name."""
    compile: bool = False
    """Compile the model with torch.compile: pays off in long runs on a GPU."""
    token_budget: Positive | None = None
    """Maximum tokens per forward pass: limits memory, changes no answer. None takes the device's default."""
    batch_items: Positive = 256
    """Maximum number of requests per call; changes no answer. On CUDA it grows with the passes."""
    trust_remote_code: bool = False
    """Allow Python code that comes with the model to run."""
    allow_pickle: bool = False
    """Read pickled weights if there are no safetensors; a pickle can run code when read."""
    threads: Positive | None = None
    """Number of CPU threads of the forward passes; None takes torch's default."""

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do, and what the files of a model on this machine would."""
        base = None if self.peft is None else base_of(self.peft)
        says = f"reads the base {base!r} that the {PEFT} of {self.peft!r} names" if base == self.model else ""
        yield OptionEffect("file", "model", self.model, says)
        if self.peft is not None:
            yield OptionEffect("file", "peft", self.peft)
        if strange := sorted(self.quantization.keys() - BITSANDBYTES):
            yield OptionEffect("code", "quantization", ", ".join(strange))
        elif self.quantization.get("quant_method", "bitsandbytes") != "bitsandbytes":
            yield OptionEffect("code", "quantization", str(self.quantization["quant_method"]))
        yield from code_effects(self.model, trusted=self.trust_remote_code, pickled=self.allow_pickle)

    def __post_init__(self) -> None:
        """Read the folder of a PEFT adapter as the model that it names, with the adapter in it."""
        if self.peft is None and (base := base_of(self.model)) is not None:
            msgspec.structs.force_setattr(self, "peft", self.model)
            msgspec.structs.force_setattr(self, "model", base)


class Pinned(Protocol):
    """A model's files with their digest."""

    @property
    def name(self) -> str:
        """A hub name, or the base name of a directory."""

    @property
    def digest(self) -> str:
        """Digest or commit that identifies the files."""

    @property
    def config(self) -> dict[str, Any]:
        """What config.json says."""


class Naming(msgspec.Struct, frozen=True):
    """Name of the adapter in identities and threads."""

    adapter: str
    version: str


def open_source(options: HFOptions, kind: Kind, more: tuple[str, ...] = ()) -> Source:
    """Find and pin a model that must be of one kind; `more` names further files that change its answers.

    Raises:
        ModelLoadError: it is not there, incomplete, or of another kind.
    """
    trusted = options.trust_remote_code
    source = find_source(
        options.model, options.revision, allow_pickle=options.allow_pickle, trust_remote_code=trusted, more=more
    )
    check_kind(kind, source.config, source.name, trust_remote_code=trusted)
    return source


class HFAdapter(ThreadedAdapter, Generic[E]):
    """Base of the adapters on Transformers. A subclass calls `_open` once, and writes `_load` for its engine `E`."""

    kind: ClassVar[Kind | None] = None
    """Kind of model that it takes; None: its files are not those of one Transformers model."""
    _options: HFOptions
    _loading: Loading
    _config: dict[str, Any]
    _engine: E | None = None

    @classmethod
    def abilities(cls, options: Any) -> Abilities:
        """Return what the class can do; nothing where the files of a folder are of another kind."""
        able = super().abilities(options)
        files = local_files(options.model)
        why = "" if files is None else cls.unsuitable(files, options)
        return able.without(dict.fromkeys(able.operations, why)) if why else able

    @classmethod
    def unsuitable(cls, files: ModelFiles, options: Any) -> str:
        """Return why a folder is no model for this adapter, in a sentence; empty if it may be one."""
        return "" if cls.kind is None else unlike(files, cls.kind, trusted=options.trust_remote_code)

    @classmethod
    def recognise(cls, files: ModelFiles) -> Sequence[Recognised]:
        """Take folders whose configuration names an architecture of the adapter's kind."""
        return () if cls.kind is None else recognised(files, cls.kind)

    def describe(self) -> Mapping[str, str]:
        """Return what the configuration and the card of a folder say of the model."""
        folder = Path(self._options.model).expanduser()
        return described(self._config, folder if folder.is_dir() else None)

    def _open(self, naming: Naming, options: HFOptions, source: Pinned, settings: Mapping[str, Scalar]) -> None:
        """Set identity and limits, and start the thread; `settings` go into the adapter's identity."""
        self._options, self._config = options, source.config
        self._loading = plan_loading(options, source.config, source.name)
        self.identity = Identity(
            adapter=naming.adapter,
            version=naming.version,
            model=label(source.name, self._loading),
            digest=source.digest,
            pinned=True,
            settings={
                **loading_settings(options, self._loading, source.config),
                "trust_remote_code": options.trust_remote_code,
                **settings,
            },
        )
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start(naming.adapter)

    async def _run(self, call: Callable[[Sequence[Q], threading.Event], list[R]], requests: Sequence[Q]) -> list[R]:
        def run(asked: Sequence[Q], stop: threading.Event) -> list[R]:
            with float32_products(choose_device(self._options.device), tf32=self._options.tf32):
                return call(asked, stop)

        answers = await super()._run(run, requests)
        self.limits = Limits(concurrency=1, batch_items=self._options.batch_items * self._growth())
        return answers

    def _ready(self) -> E:
        """Return the engine, loading it at the first call. Runs in the thread."""
        if self._engine is None:
            if self._options.threads is not None:
                import torch

                torch.set_num_threads(self._options.threads)
            self._engine = self._load()
        return self._engine

    def _growth(self) -> int:
        """Return how many times its first size a pass has, so that calls are large enough to fill it."""
        return 1

    def _load(self) -> E:
        """Load the weights. Runs in the thread."""
        raise NotImplementedError

    def _free(self) -> None:
        if self._engine is not None:
            self._engine = None
            release_memory(choose_device(self._options.device))


def check_known(ids: Sequence[int], vocabulary: int, name: str) -> None:
    """Refuse tokens that the model does not know.

    Raises:
        PermanentError: tokenizer and model do not belong together.
    """
    if max(ids, default=0) >= vocabulary:
        raise PermanentError(
            f"the tokenizer of {name!r} gives token {max(ids)}, the model knows {vocabulary}: "
            "they do not belong together.",
            code="request.tokenizer",
        )


def check_size(ids: Sequence[int], room: int, limit: int | None, name: str) -> None:
    """Refuse a text without a token, or one that leaves less than `room` tokens of the model's limit.

    Raises:
        PermanentError: saying which.
    """
    if not ids:
        raise PermanentError(
            "the prompt has no token, so there is nothing to continue. Give a text.", code="request.empty"
        )
    if limit is not None and len(ids) + room > limit:
        raise PermanentError(
            f"the text has {len(ids)} tokens{' and leaves no room to answer' if room else ''}: {name!r} takes at "
            f"most {limit}. Shorten it; it is not cut here, since that would ask another question.",
            code="request.too-long",
        )


def too_large(what: str) -> PermanentError:
    """Return the error of a request that does not fit into memory even alone."""
    return PermanentError(
        f"{what} does not fit into this device's memory. Use device = 'cpu' or a smaller dtype.", code="request.memory"
    )


def not_finite(what: str, name: str, dtype: str) -> PermanentError:
    """Return the error of a model whose numbers are infinite or undefined."""
    return PermanentError(
        f"{name!r} gives {what} not finite in {dtype}. Use dtype = 'float32'.", code="request.not-finite"
    )
