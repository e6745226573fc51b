"""The metadata of a GGUF file and its digest, known before llama.cpp is imported or weights are read.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian).
"""

from __future__ import annotations

import hashlib
import mmap
import re
import struct
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.steps import hashing
from ..shared.start import SEPARATOR

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
TOKENS = "tokenizer.ggml.tokens"
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
_QUANTISATIONS = (
    "F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ2_XXS IQ2_XS "
    "Q2_K_S IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16"
).split()
"""Names by `general.file_type`; gaps were withdrawn."""
_DESCRIBED = {
    "name": "name",
    "size": "size_label",
    "training": "finetune",
    "architecture": "architecture",
    "licence": "license",
    "by": "organization",
}
"""Fields of the metadata that say what the model is."""


class GGUF(msgspec.Struct, frozen=True):
    """A GGUF model: its files, what pins them, and its metadata without the arrays."""

    path: Path
    name: str
    digest: str
    """`sha256:` over the bytes of the file, or over those of all its shards in order."""
    metadata: dict[str, Any]
    tensors: frozenset[str]
    """Names of the tensors of the first file."""
    bos: str | None = None
    """The tokenizer's token for the beginning of a text."""
    separates: bool = False
    """Whether its vocabulary has the token that separates documents."""

    @property
    def quantisation(self) -> str:
        """Return the file's name for how the weights are stored."""
        kind = self.metadata.get("general.file_type")
        if not isinstance(kind, int):
            return "unnamed"
        known = 0 <= kind < len(_QUANTISATIONS) and _QUANTISATIONS[kind] != "-"
        return _QUANTISATIONS[kind] if known else f"file_type {kind}"

    @property
    def described(self) -> dict[str, str]:
        """Return name, size, training, architecture, quantisation and licence, as far as the file states them."""
        facts = {name: self.metadata.get(f"general.{field}") for name, field in _DESCRIBED.items()}
        return {name: value for name, value in facts.items() if isinstance(value, str) and value} | {
            "quantisation": self.quantisation
        }

    @property
    def trained_on(self) -> int | None:
        """Return the longest text the model was trained on, in tokens."""
        length = self.metadata.get(f"{self.metadata.get('general.architecture')}.context_length")
        return length if isinstance(length, int) and length > 0 else None

    @property
    def bends_with_length(self) -> bool:
        """Return whether the model places tokens by the length of the context it is opened with (LongRoPE)."""
        return any("rope_factors_" in name for name in self.tensors)

    @property
    def chat_template(self) -> str | None:
        """Return the chat template (Jinja) in the file."""
        return self.metadata.get("tokenizer.chat_template") or None


def find_gguf(model: str) -> GGUF:
    """Find a GGUF file, read its metadata and hash its bytes.

    Raises:
        ModelLoadError: no such file, no GGUF, cut short, a shard is missing, or no causal language model.
    """
    path = Path(model).expanduser()
    if not path.is_file():
        what = "a directory; give the .gguf file in it" if path.is_dir() else "not there"
        raise ModelLoadError(f"model file {model!r} is {what}.", code="model.not-found")
    metadata, tensors = _read(path)
    tokens: list[bytes] = metadata.pop(TOKENS, [])
    _check_kind(metadata, model)
    return GGUF(
        path,
        path.name,
        _digest(_shards(path, metadata)),
        metadata,
        tensors,
        bos=_named(tokens, metadata.get("tokenizer.ggml.bos_token_id", _bos_of(metadata))),
        separates=SEPARATOR.encode() in tokens,
    )


def template_of(model: str) -> str | None:
    """Return the chat template in a GGUF file, or an empty text; None if the file cannot be read."""
    path = Path(model).expanduser()
    try:
        return _template_in(path, path.stat().st_mtime_ns) if path.is_file() else None
    except ModelLoadError:
        return None


@lru_cache(maxsize=16)
def _template_in(path: Path, _changed: int) -> str:
    """Return the template in a file, read again where the file has changed: a header may name 260,000 tokens."""
    return str(_read(path)[0].get("tokenizer.chat_template") or "")


def first_files(names: Iterable[str]) -> list[str]:
    """Return the names of GGUF models: of one in shards the first file, and no projector of images."""
    models = [name for name in names if name.lower().endswith(".gguf") and not name.lower().startswith("mmproj")]
    shards = {name: _SHARD.search(name) for name in models}
    return [name for name, shard in shards.items() if shard is None or int(shard[1]) == 1]


def _bos_of(metadata: dict[str, Any]) -> int | None:
    """Return the number that SentencePiece gives the token where the file names none."""
    return 1 if metadata.get("tokenizer.ggml.model") == "llama" else None


def _named(tokens: list[bytes], number: Any) -> str | None:
    return tokens[number].decode(errors="replace") if isinstance(number, int) and 0 <= number < len(tokens) else None


def _check_kind(metadata: dict[str, Any], model: str) -> None:
    kind = metadata.get("general.type", "model")
    architecture = metadata.get("general.architecture", "unknown")
    if kind != "model" or architecture == "clip":
        raise ModelLoadError(
            f"{model!r} contains only a part of a language model ({kind}, {architecture}).", code="model.kind"
        )
    if metadata.get(f"{architecture}.attention.causal") is False:
        raise ModelLoadError(
            f"{model!r} is not a causal language model ({architecture}); it cannot continue a text.", code="model.kind"
        )


def _shards(path: Path, metadata: dict[str, Any]) -> list[Path]:
    count = metadata.get("split.count", 1)
    if count <= 1:
        return [path]
    if metadata.get("split.no") != 0 or not _SHARD.search(path.name):
        raise ModelLoadError(
            f"{str(path)!r} is one of {count} shards; give the first (...-00001-of-{count:05}.gguf).",
            code="model.files",
        )
    base = _SHARD.sub("", path.name)
    files = [path.with_name(f"{base}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1)]
    for file in files:
        if not file.is_file():
            raise ModelLoadError(
                f"shard {file.name!r} of {str(path)!r} is missing; all {count} are needed.", code="model.files"
            )
    return files


def _digest(files: list[Path]) -> str:
    digests = []
    with hashing(files):
        for path in files:
            with path.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    if len(digests) == 1:
        return f"sha256:{digests[0]}"
    return f"sha256:{hashlib.sha256(' '.join(digests).encode()).hexdigest()}"


def _read(path: Path) -> tuple[dict[str, Any], frozenset[str]]:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelLoadError(
                f"{str(path)!r} is not a GGUF file. Convert the model with llama.cpp's converter.",
                code="model.kind",
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(data).read()
            except (struct.error, UnicodeDecodeError, IndexError, KeyError):
                raise ModelLoadError(
                    f"{str(path)!r} is a damaged or incomplete GGUF file. Fetch it again.", code="model.damaged"
                ) from None
            except ValueError as error:
                raise ModelLoadError(f"{str(path)!r}: {error}.", code="model.damaged") from None


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at = data, 4

    def read(self) -> tuple[dict[str, Any], frozenset[str]]:
        version = self._take("I")
        if version not in (2, 3):
            raise ValueError(f"GGUF version {version} is not known (2 and 3 are); an old or big-endian file?")
        tensors, pairs = self._take("Q"), self._take("Q")
        metadata = {}
        for _ in range(pairs):
            name = self._text()
            kind = self._take("I")
            value = self._texts() if name == TOKENS and kind == _ARRAY else self._value(kind)
            if value is not None:
                metadata[name] = value
        return metadata, frozenset(self._tensor() for _ in range(tensors))

    def _take(self, code: str) -> Any:
        (value,) = struct.unpack_from(f"<{code}", self._data, self._at)
        self._at += struct.calcsize(f"<{code}")
        return value

    def _text(self) -> str:
        return self._bytes().decode()

    def _bytes(self) -> bytes:
        length = self._take("Q")
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise IndexError
        return self._data[start : self._at]

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        return self._skip_array() if kind == _ARRAY else self._take(_SCALARS[kind])

    def _skip_array(self) -> None:
        kind, count = self._take("I"), self._take("Q")
        if kind in _SCALARS:
            self._jump(count * struct.calcsize(f"<{_SCALARS[kind]}"))
            return
        for _ in range(count):
            if kind == _STRING:
                self._jump(self._take("Q"))
            else:
                self._value(kind)

    def _texts(self) -> list[bytes]:
        if self._take("I") != _STRING:
            raise IndexError
        return [self._bytes() for _ in range(self._take("Q"))]

    def _tensor(self) -> str:
        name = self._text()
        self._jump(8 * self._take("I") + 12)
        return name

    def _jump(self, size: int) -> None:
        self._at += size
