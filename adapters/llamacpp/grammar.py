"""`Grammar`: an answer that fits a JSON schema, or is one of some choices, by llama.cpp's own grammars (GBNF).

It only rules tokens out; among those that are left, this adapter's own seeded sampler draws.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Generate
from .model import Engine
from .sampling import Row

_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


def grammar_text(request: Generate) -> str:
    """Return the grammar of a request; empty if it asks for none.

    Raises:
        PermanentError: it has a schema and choices, or the schema cannot be turned into a grammar.
    """
    if request.json_schema and request.choices:
        raise PermanentError("a request has a JSON schema and choices; it can have one.", code="request.value")
    if request.choices:
        return _one_of(request.choices)
    return _of_schema(request.json_schema) if request.json_schema else ""


def _one_of(choices: Sequence[str]) -> str:
    # The escapes of JSON strings are those of grammars.
    return "root ::= " + " | ".join(json.dumps(choice) for choice in choices)


def _of_schema(schema: str) -> str:
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    problem = ""
    try:
        text: str = json_schema_to_gbnf(schema)
        return text
    except Exception as error:
        # The library raises whatever its parser trips over.
        problem = f"{type(error).__name__}: {error}"
    raise PermanentError(f"the JSON schema cannot be turned into a grammar: {problem[:200]}", code="request.value")


class Grammar:
    """The state of a grammar while an answer is drawn."""

    def __init__(self, engine: Engine, text: str) -> None:
        """Parse a grammar.

        Raises:
            PermanentError: llama.cpp does not read it.
        """
        self._lib = engine.lib
        self._sampler: Any = self._lib.llama_sampler_init_grammar(engine.vocab, text.encode(), b"root")
        if not self._sampler:
            raise PermanentError("llama.cpp does not read the grammar of a request.", code="request.value")

    def allow(self, row: Row) -> Row:
        """Return log-probabilities with those of tokens that do not fit ruled out."""
        data = np.zeros(len(row), dtype=_DATA)
        data["id"] = np.arange(len(row))
        data["logit"] = row
        pointer = data.ctypes.data_as(ctypes.POINTER(self._lib.llama_token_data))
        table = self._lib.llama_token_data_array(data=pointer, size=len(row), selected=-1, sorted=False)
        self._lib.llama_sampler_apply(self._sampler, ctypes.byref(table))
        kept = data[: table.size]
        fit = kept["id"][np.isfinite(kept["logit"])]
        allowed: Row = np.full(len(row), -np.inf)
        allowed[fit] = row[fit]
        return allowed

    def accept(self, token: int) -> None:
        """Go on behind a token."""
        self._lib.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        """Free it."""
        self._lib.llama_sampler_free(self._sampler)
