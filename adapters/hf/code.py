"""Code that the files of a Transformers model would run when they are loaded, as far as its small files say."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.contracts import OptionEffect
from ...core.contracts.errors import DataError
from ...core.contracts.model_files import ModelFiles
from .files import CONFIG, PICKLED, SAFE, matches

CONFIGURATIONS = (CONFIG, "tokenizer_config.json", "processor_config.json", "preprocessor_config.json")


def code_effects(model: str, *, trusted: bool, pickled: bool) -> Iterator[OptionEffect]:
    """Yield what lets code run: the two settings, and for a folder what its files would do under them."""
    files = ModelFiles(model)
    named = [name for name in CONFIGURATIONS if _names_code(files, name)]
    if trusted:
        yield OptionEffect("code", "trust_remote_code", "true")
    for name in named if not trusted else ():
        says = f"runs code that comes with the model ({name} of {model!r} names it)"
        yield OptionEffect("code", "model", model, says, "trust_remote_code is not set")
    if pickled:
        yield OptionEffect("code", "allow_pickle", "true")
    elif (weights := matches(files.names, PICKLED)) and not matches(files.names, SAFE):
        says = f"reads pickled weights, which can run code ({weights[0]} of {model!r})"
        yield OptionEffect("code", "model", model, says, "allow_pickle is not set")


def _names_code(files: ModelFiles, name: str) -> bool:
    try:
        return bool(files.settings(name).get("auto_map"))
    except DataError:
        return False  # loading reports it
