"""`Replay`: a model that answers with stored responses, and stores those of a model that stands behind it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...catalogue.golden import rounded
from ...contracts.abilities import OPERATIONS, Abilities
from ...contracts.adapter import Identity, Limits, ModelAdapter
from ...contracts.canonical import decode_response, encode, encode_response, question_of
from ...contracts.errors import ModelError, PermanentError
from ...contracts.records import AnyRequest, AnyResponse, Classification, Drawing, Generation

UNKNOWN = "golden.unknown-request"
"""Code of the error of a request that no stored response answers."""
DIGITS = 6
"""Of the numbers of responses: nothing depends on more, and the file is smaller."""
EVERYTHING = Abilities(
    operations=frozenset(OPERATIONS.values()), fields=frozenset({"top_k", "min_p", "json_schema", "choices"})
)
FAILURE = "the model of the golden file does not answer this"


class Replay(ModelAdapter):
    """A model that takes every kind of request. What its file does not answer fails, or is asked of `behind`."""

    limits = Limits(concurrency=4, batch_items=500)

    def __init__(
        self, identity: Identity, stored: Mapping[str, dict[str, Any]], behind: ModelAdapter | None = None
    ) -> None:
        """Take the stored responses, by the digest of the request."""
        self.identity, self._stored, self._behind = identity, dict(stored), behind
        self.used: dict[str, dict[str, Any]] = {}
        """Responses that were given."""
        self.unknown = 0
        """Requests that nothing answers."""

    @classmethod
    def abilities(cls, options: Any) -> Abilities:
        """Return all abilities."""
        return EVERYTHING

    async def answer(self, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
        """Answer from the store, after asking what it lacks."""
        digests = [_digest(request) for request in requests]
        missing = {name: request for name, request in zip(digests, requests, strict=True) if name not in self._stored}
        if missing and self._behind is not None:
            self._behind.services = self.services
            answers = await self._behind.answer(list(missing.values()))
            for (name, request), answer in zip(missing.items(), answers, strict=True):
                self._stored[name] = self._record(spoilt(request, answer))
        return [self._response(name) for name in digests]

    def _record(self, answer: AnyResponse | ModelError) -> dict[str, Any]:
        if isinstance(answer, ModelError):
            return {"failure": FAILURE}
        record = {"response": rounded(json.loads(encode_response(answer)), DIGITS)}
        if isinstance(answer, Drawing) and answer.image is not None and self.services.blobs is not None:
            record["image"] = base64.b64encode(self.services.blobs(answer.image)).decode()
        return record

    def _response(self, name: str) -> AnyResponse | ModelError:
        if (record := self._stored.get(name)) is None:
            self.unknown += 1
            return PermanentError("no stored response answers this request", code=UNKNOWN)
        self.used[name] = record
        if "failure" in record:
            return PermanentError(str(record["failure"]), code="golden.failure")
        if "image" in record and self.services.keep is not None:
            self.services.keep(base64.b64decode(record["image"]), "image/png")
        return decode_response(json.dumps(record["response"]))


def _digest(request: AnyRequest) -> str:
    return hashlib.sha256(encode(request)).hexdigest()[:16]


def spoilt(request: AnyRequest, response: AnyResponse | ModelError) -> AnyResponse | ModelError:
    """Return the answer, or an odd, refused, filtered or failed one, by the digest of the question."""
    kind = hashlib.sha256(encode(question_of(request))).digest()[0]
    if kind < 6:
        return PermanentError(FAILURE, code="golden.failure")
    if isinstance(response, Generation):
        return _spoilt_text(kind, request.attempt, response)
    if isinstance(response, Drawing) and kind < 16:
        return Drawing(image=None, status="filtered")
    if isinstance(response, Classification) and kind < 20:
        share = 1 / len(response.probabilities)
        return msgspec.structs.replace(response, probabilities=dict.fromkeys(response.probabilities, share))
    return response


def _spoilt_text(kind: int, attempt: int, response: Generation) -> Generation:
    if kind < 18:
        return Generation(text="I'm sorry, but I can't help with that.", status="refused", finish_reason="stop")
    if kind < 24:
        return Generation(text=f"I'm sorry. {response.text}", status="refused", finish_reason="stop")
    if kind < 30:
        return Generation(text="", status="filtered", finish_reason="content_filter")
    if kind < 40:
        return Generation(text="It depends on many things.", finish_reason="stop")
    if kind < 46:
        return Generation(text="", finish_reason="length")
    if kind < 60:
        return Generation(text=f"**Answer:** {response.text.strip()}", finish_reason="stop")
    if kind < 70 and attempt == 0:
        return Generation(text="Hmm.", finish_reason="stop")
    return response
