"""One GGUF model in llama.cpp's C interface: tokens, and logits from a cache that does not change results.

Prompts are evaluated in blocks that end where the prompt's own tokens say, and only whole blocks are kept for the next
prompt. So the arithmetic of a prompt is the same with or without a cached beginning, and no answer depends on earlier
ones.
"""

from __future__ import annotations

import collections
import ctypes
import importlib
import os
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.contracts.errors import ModelLoadError, PermanentError
from ...core.contracts.steps import step
from .gguf import GGUF
from .sampling import Row, log_softmax

LEAST, MOST = 16, 128
"""Tokens per evaluation of a prompt: a block ends with the first line break from the least on, or with the most. Part
of the arithmetic: changing them changes the last digits of answers."""
_F32, _F16 = 0, 1
_ERROR = 4
"""Level of errors in llama.cpp's log."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How to load a model."""

    n_ctx: int
    n_gpu_layers: int
    threads: int
    flash_attention: bool
    full_cache: bool
    """Keep keys and values in float32 instead of float16."""


def find_library() -> Any:
    """Import llama-cpp-python.

    Raises:
        ModelLoadError: it is installed, but does not load.
    """
    try:
        return importlib.import_module("llama_cpp")
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelLoadError(f"llama-cpp-python fails to load: {error}. Reinstall it.", code="model.library") from error


class Engine:
    """A loaded model. Not thread-safe."""

    def __init__(self, source: GGUF, setup: Setup) -> None:
        """Load the weights.

        Raises:
            ModelLoadError: with llama.cpp's own message.
        """
        self.lib = find_library()
        self._name = source.name
        self._said = _quiet()
        self._model = self._load_weights(source, setup)
        self.vocab = self.lib.llama_model_get_vocab(self._model)
        self._ctx = self._open_context(setup)
        self._memory = self.lib.llama_get_memory(self._ctx)
        self._batch = self.lib.llama_batch_init(MOST, 0, 1)
        self._held: list[int] = []
        self._breaking: dict[int, bool] = {}
        self._vocabulary: int = self.lib.llama_vocab_n_tokens(self.vocab)
        # Where the file names none, llama.cpp gives a number all the same.
        bos: int = self.lib.llama_vocab_bos(self.vocab) if source.bos is not None else -1
        self.any_bos = bos if bos >= 0 else None
        eos: int = self.lib.llama_vocab_eos(self.vocab)
        self.eos = eos if eos >= 0 else None
        self._blank = False
        self._blank = b"".join(self.piece(token, special=False) for token in self.encode("a")) == b" a"
        self.bos = self.any_bos if self.lib.llama_vocab_get_add_bos(self.vocab) else None

    def encode(self, text: str) -> list[int]:
        """Tokenise a text as Transformers does: names of special tokens stand for them; no begin-of-text is added.

        SentencePiece vocabularies put a blank before a text: one that begins with a blank has it already.
        """
        data = (text[1:] if self._blank and text[:1] == " " != text else text).encode()
        # No token is shorter than a byte but for an added leading space, so this is always room enough.
        room = len(data) + 16
        while True:
            tokens = (self.lib.llama_token * room)()
            count = self.lib.llama_tokenize(self.vocab, data, len(data), tokens, room, False, True)
            if count >= 0:
                return list(tokens[:count])
            room = -count

    def piece(self, token: int, *, special: bool) -> bytes:
        """Return the bytes a token stands for; a special token's are empty unless `special`."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = self.lib.llama_token_to_piece(self.vocab, token, buffer, room, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            room = -count

    def ends(self, token: int) -> bool:
        """Return whether a token ends an answer."""
        return bool(self.lib.llama_vocab_is_eog(self.vocab, token))

    def token_texts(self) -> dict[str, str]:
        """Return the tokens that chat templates name."""
        bos = -1 if self.any_bos is None else self.any_bos
        ids = {"bos_token": bos, "eos_token": -1 if self.eos is None else self.eos}
        return {name: "" if token < 0 else self.piece(token, special=True).decode() for name, token in ids.items()}

    def prepare(self, tokens: Sequence[int]) -> Row:
        """Make the cache hold exactly these tokens; return the log-probabilities of the next one."""
        last = len(tokens) - 1
        common = min(_common(self._held, tokens), last)
        ends = [*self.block_ends(tokens[:last]), last + 1]
        keep = max((end for end in ends if end <= common), default=0)
        keep = keep if self.rewind(keep) else 0
        self._held = []
        for start, end in pairwise([keep, *(end for end in ends if end > keep)]):
            self._evaluate(tokens[start:end], start, last)
        self._held = list(tokens)
        return self._row(last - start)

    def block_ends(self, tokens: Sequence[int]) -> list[int]:
        """Return where blocks end, which depends on the tokens before each end alone."""
        ends, start = [], 0
        for place, token in enumerate(tokens, 1):
            if place - start == MOST or (place - start >= LEAST and self._breaks(token)):
                ends.append(start := place)
        return ends

    def rewind(self, length: int) -> bool:
        """Forget all but the first tokens; False if the model cannot (recurrent ones), and then the cache is empty."""
        if self.lib.llama_memory_seq_rm(self._memory, 0, length, -1):
            return True
        self.lib.llama_memory_clear(self._memory, True)
        self._held = []
        return False

    def run(self, tokens: Sequence[int], start: int, wanted: int) -> Iterator[tuple[int, Row]]:
        """Evaluate tokens at places from `start` on; yield place and log-probabilities for places from `wanted` on.

        Raises:
            PermanentError: llama.cpp fails, or gives logits that are not finite.
        """
        for first in range(0, len(tokens), MOST):
            block = tokens[first : first + MOST]
            self._evaluate(block, start + first, wanted)
            for number in range(len(block)):
                if (place := start + first + number) >= wanted:
                    yield place, self._row(number)

    def close(self) -> None:
        """Free all memory."""
        self.lib.llama_batch_free(self._batch)
        self.lib.llama_free(self._ctx)
        self.lib.llama_model_free(self._model)

    def _breaks(self, token: int) -> bool:
        """Return whether a token has a line break."""
        if (known := self._breaking.get(token)) is None:
            known = self._breaking[token] = b"\n" in self.piece(token, special=False)
        return known

    def _evaluate(self, block: Sequence[int], start: int, wanted: int) -> None:
        batch = self._batch
        batch.n_tokens = len(block)
        for number, token in enumerate(block):
            batch.token[number] = token
            batch.pos[number] = start + number
            batch.n_seq_id[number] = 1
            batch.seq_id[number][0] = 0
            batch.logits[number] = start + number >= wanted
        code = self.lib.llama_decode(self._ctx, batch)
        if code != 0:
            self.rewind(0)
            self._held = []
            raise PermanentError(
                f"llama.cpp could not evaluate the text with {self._name!r} (code {code}).", code="request.failed"
            )

    def _row(self, number: int) -> Row:
        pointer = self.lib.llama_get_logits_ith(self._ctx, number)
        logits: npt.NDArray[np.float32] = np.ctypeslib.as_array(pointer, shape=(self._vocabulary,))
        row = log_softmax(logits)
        # A single token may be ruled out (minus infinity); NaN anywhere spoils them all.
        if np.isnan(row).any():
            raise PermanentError(f"{self._name!r} gives logits that are not finite.", code="request.not-finite")
        return row

    def _load_weights(self, source: GGUF, setup: Setup) -> Any:
        self.lib.llama_backend_init()
        params = self.lib.llama_model_default_params()
        params.n_gpu_layers = setup.n_gpu_layers if setup.n_gpu_layers >= 0 else 0x7FFFFFFF
        self._said.clear()
        with step(f"load the weights of {source.name}"):
            model = self.lib.llama_model_load_from_file(os.fsencode(source.path), params)
        if model is None:
            raise ModelLoadError(f"llama.cpp cannot load {str(source.path)!r}: {self._why()}.", code="model.unloadable")
        if self.lib.llama_model_has_encoder(model) or not self.lib.llama_model_has_decoder(model):
            self.lib.llama_model_free(model)
            raise ModelLoadError(f"{str(source.path)!r} is not a decoder-only language model.", code="model.kind")
        return model

    def _open_context(self, setup: Setup) -> Any:
        params = self.lib.llama_context_default_params()
        params.n_ctx = setup.n_ctx
        params.n_batch = params.n_ubatch = MOST
        params.n_threads = params.n_threads_batch = setup.threads
        # 0 and 1: off and on; the default, automatic, would make answers depend on the device.
        params.flash_attn_type = int(setup.flash_attention)
        params.type_k = params.type_v = _F32 if setup.full_cache else _F16
        # A cache that drops what slid out of the window could not be rewound.
        params.swa_full = True
        params.no_perf = True
        context = self.lib.llama_init_from_model(self._model, params)
        if context is None:
            self.lib.llama_model_free(self._model)
            raise ModelLoadError(
                f"llama.cpp has no memory for {setup.n_ctx} tokens of {self._name!r}: {self._why()}. Lower n_ctx.",
                code="model.memory",
            )
        return context

    def _why(self) -> str:
        lines = [line.strip().rstrip(".") for line in "".join(self._said).splitlines() if line.strip()]
        return lines[0] if lines else "no reason given"


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class _Log(collections.deque[str]):
    """The last errors that llama.cpp logged."""

    callback: Any = None


@cache
def _quiet() -> _Log:
    """Keep llama.cpp's log off the console, and its errors for messages. There is one log per process."""
    lib = find_library()
    said = _Log(maxlen=20)

    @lib.llama_log_callback  # type: ignore[untyped-decorator]
    def listen(level: int, text: bytes, _: Any) -> None:
        if level == _ERROR:
            said.append(text.decode(errors="replace"))

    # The C side holds no reference: the callback must outlive every model.
    said.callback = listen
    lib.llama_log_set(listen, ctypes.c_void_p(0))
    return said
