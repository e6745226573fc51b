"""How weights are loaded: precision, devices, attention, quantisation, PEFT adapter, compilation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol, get_args

import msgspec

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.records import Scalar
from ..shared.torch import DType
from .hub import one_line
from .peft import Peft, find_peft

Attention = Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"]
BITSANDBYTES = frozenset(
    {
        *("quant_method", "load_in_8bit", "load_in_4bit", "bnb_4bit_quant_type", "bnb_4bit_compute_dtype"),
        *("bnb_4bit_use_double_quant", "bnb_4bit_quant_storage", "llm_int8_threshold", "llm_int8_has_fp16_weight"),
        *("llm_int8_skip_modules", "llm_int8_enable_fp32_cpu_offload"),
    }
)
"""Settings of the one quantisation that runs no program of a model's and reads no other file."""
Placing = Literal["auto", "balanced", "balanced_low_0", "sequential"]


class Wanted(Protocol):
    """The settings that say how weights are loaded."""

    @property
    def dtype(self) -> DType | Literal["auto"]: ...  # noqa: D102
    @property
    def device(self) -> str: ...  # noqa: D102
    @property
    def device_map(self) -> Placing | None: ...  # noqa: D102
    @property
    def attention(self) -> Attention | None: ...  # noqa: D102
    @property
    def quantization(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def peft(self) -> str | None: ...  # noqa: D102
    @property
    def peft_revision(self) -> str | None: ...  # noqa: D102
    @property
    def compile(self) -> bool: ...  # noqa: D102
    @property
    def tf32(self) -> bool: ...  # noqa: D102


class Loading(NamedTuple):
    """How one model is loaded."""

    dtype: DType = "float32"
    device: str = "auto"
    device_map: Placing | None = None
    attention: Attention | None = None
    quantization: Mapping[str, Any] = {}
    peft: Peft | None = None
    compile: bool = False


def plan_loading(wanted: Wanted, config: Mapping[str, Any], name: str) -> Loading:
    """Settle what the settings leave open, from the model's files alone.

    Raises:
        ModelLoadError: a precision that the configuration names and no adapter has, a quantisation without a method,
            or a PEFT adapter that is not there.
    """
    dtype = resolve_dtype(config, name) if wanted.dtype == "auto" else wanted.dtype
    if wanted.quantization and "quant_method" not in wanted.quantization:
        raise ModelLoadError(
            "quantization names no quant_method. Write it as Transformers does, for example "
            '{ quant_method = "bitsandbytes", load_in_8bit = true }.',
            code="model.quantization",
        )
    if wanted.quantization and (own := own_method(config)):
        raise ModelLoadError(
            f"the weights of {name!r} are quantised already ({own}), so quantization cannot be set. Remove it.",
            code="model.quantization",
        )
    peft = None if wanted.peft is None else find_peft(wanted.peft, wanted.peft_revision)
    return Loading(dtype, wanted.device, wanted.device_map, wanted.attention, wanted.quantization, peft, wanted.compile)


def loading_settings(wanted: Wanted, loading: Loading, config: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the part of these settings that belongs to a model's identity: the precision, and what else is set."""
    settings: dict[str, Scalar] = {"dtype": loading.dtype}
    if wanted.tf32:
        settings["tf32"] = True
    if loading.device_map is not None:
        settings["device_map"] = loading.device_map
    if loading.attention is not None:
        settings["attention"] = loading.attention
    if loading.quantization:
        settings["quantization"] = msgspec.json.encode(loading.quantization, order="sorted").decode()
    elif own := own_method(config):
        settings["quantization"] = f"checkpoint:{own}"
    if loading.peft is not None:
        settings["peft"] = loading.peft.digest
    if loading.compile:
        settings["compile"] = True
    return settings


def label(name: str, loading: Loading) -> str:
    """Return the name of a model for people, with that of the PEFT adapter in it."""
    return name if loading.peft is None else f"{name} with {loading.peft.name}"


def own_method(config: Mapping[str, Any]) -> str:
    """Return how a checkpoint's weights are quantised, by its own configuration; empty if they are not."""
    own = config.get("quantization_config")
    return str(own.get("quant_method") or "unnamed") if isinstance(own, Mapping) else ""


def resolve_dtype(config: Mapping[str, Any], name: str) -> DType:
    """Return the precision in which a checkpoint was saved, by its own configuration; float32 if it names none.

    Raises:
        ModelLoadError: it names one that no adapter has.
    """
    parts = [config, *(part for key in ("text_config", "llm_config") if isinstance(part := config.get(key), Mapping))]
    named = [part.get("dtype") or part.get("torch_dtype") for part in parts]
    found = str(next((value for value in named if value), "float32")).removeprefix("torch.")
    for known in get_args(DType):
        if found == known:
            return known  # type: ignore[no-any-return]
    able = ", ".join(get_args(DType))
    raise ModelLoadError(
        f"the configuration of {name!r} names the precision {found!r}. Set dtype to one of: {able}.",
        code="model.dtype",
    )


def load_arguments(loading: Loading, device: str) -> dict[str, Any]:
    """Return the arguments of `from_pretrained`, except the precision.

    Raises:
        ModelLoadError: Transformers does not know the quantisation, or a package that it needs is not there.
    """
    arguments: dict[str, Any] = {}
    if loading.attention is not None:
        arguments["attn_implementation"] = loading.attention
    if loading.quantization:
        with package_errors("quantization"):
            arguments["quantization_config"] = _quantizer(loading.quantization)
    if loading.device_map is not None:
        arguments["device_map"] = loading.device_map
    elif loading.quantization:
        # Quantised weights are packed as they are read, so they cannot be moved afterwards.
        arguments["device_map"] = {"": device}
    return arguments


@contextmanager
def package_errors(setting: str) -> Iterator[None]:
    """Turn the error of a package that is not installed into one that names the setting."""
    try:
        yield
    except ImportError as error:
        raise ModelLoadError(
            f"{setting} needs a package that is not installed: {one_line(error)}", code="model.package"
        ) from error


def settle(model: Any, loading: Loading, device: str) -> Any:
    """Put a loaded model onto its device, with its PEFT adapter, ready for evaluation."""
    if loading.peft is not None:
        loading.peft.apply(model)
    if getattr(model, "hf_device_map", None) is None:
        model = model.to(device)
    return model.eval()


def compile_model(model: Any, loading: Loading) -> None:
    """Compile a model if that is wanted; last of all, since hooks that are added later would not run."""
    if loading.compile:
        # One program for all shapes: passes differ in rows and width, and each shape would take a minute of its own.
        model.compile(dynamic=True)


def _quantizer(settings: Mapping[str, Any]) -> Any:
    from transformers.quantizers.auto import AutoQuantizationConfig

    try:
        return AutoQuantizationConfig.from_dict(dict(settings))
    except ImportError:
        raise
    # Each method checks its own arguments in its own way.
    except Exception as error:
        raise ModelLoadError(
            f"Transformers does not take this quantization: {one_line(error)}", code="model.quantization"
        ) from error
