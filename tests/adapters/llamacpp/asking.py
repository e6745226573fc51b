"""Ask a tiny GGUF."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
from prejudge.core.contracts.errors import ModelError
from prejudge.core.contracts.records import AnyResponse, Generate, Message, Sampling, Text

FRANCE = "The capital of France is"
CONTINUATIONS = (" Paris", " unbelievably friendly", "n't", " Par", " Rome, one two three")
Pair = tuple[Path, Path]


def ask(file: Path, requests: Sequence[Any], **options: Any) -> list[Any]:
    async def once() -> list[AnyResponse | ModelError]:
        adapter = LlamaCpp(LlamaCppOptions(model=str(file), **{"threads": 1, **options}))
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    return asyncio.run(once())


def say(*texts: str, **sampling: Any) -> Generate:
    roles = ("user", "assistant") * len(texts)
    messages = tuple(Message(role, (Text(text),)) for role, text in zip(roles, texts, strict=False))  # type: ignore[arg-type]
    return Generate(messages=messages, sampling=Sampling(**{"max_tokens": 12, **sampling}))
