"""PEFT adapters, such as LoRA weights: found and pinned without loading them, and put into a loaded model whole."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ...core.contracts.errors import MissingExtraError, ModelLoadError
from .files import digest_files, read_config
from .hub import download, one_line, pin_file

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
CODE = ("megatron_config",)
"""Settings by which the configuration of an adapter lets PEFT import a module that it names."""
IN_PLACE = frozenset({"LORA", "LOHA", "LOKR", "IA3", "ADALORA", "OFT", "BOFT", "HRA", "VERA", "FOURIERFT", "VBLORA"})
"""Methods that change a model's own layers; the others put tokens or states of their own before every text."""


class Peft(NamedTuple):
    """A PEFT adapter and what pins it."""

    name: str
    """A hub name, or the base name of a directory."""
    digest: str
    """`sha256:...` over configuration and weights, or the commit of a hub name."""
    folder: Path | None
    """The directory; None for a hub name, whose files are fetched at the first use."""

    def apply(self, model: Any) -> None:
        """Put the adapter's weights into a model's layers.

        Raises:
            ModelLoadError: they are not those of this model.
        """
        import peft
        from safetensors import safe_open

        folder = self.folder or download(self.name, self.digest, [CONFIG, WEIGHTS])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wrapped = peft.PeftModel.from_pretrained(model, str(folder), local_files_only=True)
            with safe_open(folder / WEIGHTS, framework="pt") as file:
                there = set(file.keys())
            needed = set(peft.get_peft_model_state_dict(wrapped))
        # Weights of another model fail in whatever way the layers they do not fit do.
        except Exception as error:
            raise ModelLoadError(
                f"cannot put the PEFT adapter {self.name!r} into the model: {one_line(error)}", code="model.peft"
            ) from error
        # PEFT only warns of these, and would answer as the model without its adapter.
        if odd := sorted(there ^ needed):
            raise ModelLoadError(
                f"the PEFT adapter {self.name!r} is not of this model: {odd[0]} is "
                f"{'missing' if odd[0] in needed else 'left over'}. Give the model that it was trained on.",
                code="model.peft",
            )


def find_peft(name: str, revision: str | None = None) -> Peft:
    """Find a PEFT adapter by directory or hub name and say what pins it.

    Raises:
        MissingExtraError: `peft` is not installed.
        ModelLoadError: it is not there, incomplete, or of a kind that does not change a model's own layers.
    """
    if find_spec("peft") is None:
        raise MissingExtraError("setting 'peft'", "peft")
    folder = Path(name).expanduser()
    if not folder.is_dir():
        path = pin_file(name, revision, CONFIG)
        _check_kind(path, name)
        return Peft(name, path.parent.name, None)
    if revision is not None:
        raise ModelLoadError(
            f"peft_revision {revision!r} is given for the directory {name!r}; remove it: only hub names have one.",
            code="model.revision",
        )
    files = [folder / CONFIG, folder / WEIGHTS]
    if missing := [path.name for path in files if not path.is_file()]:
        raise ModelLoadError(
            f"{name!r} contains no {missing[0]}, so it is not a PEFT adapter. Save it as safetensors: "
            "model.save_pretrained(directory).",
            code="model.files",
        )
    _check_kind(files[0], name)
    return Peft(folder.resolve().name, digest_files(files), folder)


def _check_kind(path: Path, name: str) -> None:
    config = read_config(path)
    if named := [key for key in CODE if config.get(key)]:
        raise ModelLoadError(
            f"{CONFIG} of the PEFT adapter {name!r} names a module that PEFT would import ({named[0]}), which is not "
            "done. Remove the setting if the adapter does not need it.",
            code="model.own-code",
        )
    kind = str(config.get("peft_type"))
    if kind.upper() not in IN_PLACE:
        raise ModelLoadError(
            f"PEFT adapter {name!r} is of the kind {kind!r}, which does not change the model's own layers. "
            f"Those that do: {', '.join(sorted(IN_PLACE))}.",
            code="model.peft",
        )
