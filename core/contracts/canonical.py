"""Canonical encoding of a record, and key of an exchange.

Key = sha256(version tag, identity digest, canonical request). The encoding is JSON with sorted names, no spaces, and
defaults left out; text is kept as it is, without unicode normalisation. Equal requests encode equally in every
process; everything that changes an answer changes the key, and nothing else does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from .errors import DataError
from .records import AnyRequest, AnyResponse, Generate

if TYPE_CHECKING:
    from .adapter import Identity

KEY_VERSION = b"prejudge-key-1"
KEY_BYTES = 32
MOST_TOKENS = 2**31 - 1
"""The largest integer that every database can hold in a column."""
SHOWN = 300
"""Characters of a response that an error shows."""

_encoder = msgspec.json.Encoder(order="sorted")
_requests: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
_responses: msgspec.json.Decoder[AnyResponse] = msgspec.json.Decoder(AnyResponse)


def encode(record: Any) -> bytes:
    """Encode a record canonically, as UTF-8 JSON.

    Raises:
        DataError: the record holds text that is not valid unicode (a lone surrogate), or a number that is not finite.
    """
    try:
        encoded = _encoder.encode(record)
    except UnicodeEncodeError as error:
        raise DataError(
            f"text is not valid unicode: {error}. Replace the lone surrogate.", code="data.unicode"
        ) from None
    # JSON cannot represent them: all are written as null, so that different numbers would be equal.
    if b"null" in encoded and (found := _not_finite(msgspec.to_builtins(record))) is not None:
        raise DataError(
            f"{found[0].lstrip('.') or 'the number'} is {found[1]}, which JSON cannot represent.",
            code="data.not-finite",
        )
    return encoded


def _not_finite(value: Any, place: str = "") -> tuple[str, float] | None:
    """Return the place and value of the first number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return place, value
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    return next((found for name, part in parts if (found := _not_finite(part, f"{place}.{name}"))), None)


def encode_response(response: AnyResponse) -> bytes:
    """Encode a response, and check that decoding gives the same response.

    Raises:
        DataError: a value cannot be stored exactly, such as a log-probability that is not finite.
    """
    problem = None
    try:
        encoded = encode(response)
        if _responses.decode(encoded) != response:
            problem = "decoding it gives another value"
        elif max(response.usage.input_tokens, response.usage.output_tokens) > MOST_TOKENS:
            problem = f"a count of tokens is above {MOST_TOKENS:,}"
    except (DataError, msgspec.ValidationError) as error:
        problem = str(error)
    if problem is not None:
        raise DataError(
            f"the model's response cannot be stored exactly: {problem}. {_beginning(response)}", code="data.response"
        )
    return encoded


def _beginning(response: AnyResponse) -> str:
    text = repr(response)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def decode_request(encoded: bytes | str) -> AnyRequest:
    """Decode a request from its canonical encoding."""
    return _requests.decode(encoded)


def question_of(request: AnyRequest) -> AnyRequest:
    """Return a request without its sample, attempt and seed: equal for all repeats of one prompt."""
    numbers: dict[str, Any] = {name: 0 for name in ("attempt", "sample", "seed") if getattr(request, name, 0)}
    if isinstance(request, Generate) and request.sampling.seed is not None:
        numbers["sampling"] = msgspec.structs.replace(request.sampling, seed=None)
    return msgspec.structs.replace(request, **numbers)


def wire_seed(request: Generate, generation: int = 0) -> int | None:
    """Return the seed to send with a request, from 0 to 2**31 - 1; None: send none.

    Repeats have a seed of their own, so that neither a cache in front of the model nor a fixed default can answer them
    all alike. It follows from the request and is no part of it: the key stays what it is. A seed of the request itself
    decides: it is sent with the first draw, and repeats derive theirs from it.

    Args:
        request: what is asked.
        generation: how often it was answered before, if it is asked anew (`Services.generation`).

    Returns:
        The seed; None for the first draw of a request without one.

    Example:
        >>> import prejudge
        >>> from prejudge import records
        >>> first, second = (records.Generate(messages=(), sample=number) for number in (0, 1))
        >>> prejudge.wire_seed(first), 0 <= prejudge.wire_seed(second) < 2**31
        (None, True)
    """
    own = request.sampling.seed
    if own is not None:
        if request.sample == request.attempt == 0:
            return own
        text = f"{own}|{request.sample}|{request.attempt}".encode()
    elif request.sample or request.attempt or generation:
        text = encode(request) + (f"|{generation}".encode() if generation else b"")
    else:
        return None
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") >> 1


def decode_response(encoded: bytes | str) -> AnyResponse:
    """Decode a response from its canonical encoding."""
    return _responses.decode(encoded)


def encode_identity(identity: Identity) -> bytes:
    """Encode what of an identity is part of keys: all but the name of files that their digest pins."""
    fields = msgspec.structs.asdict(identity)
    if identity.pinned:
        fields["model"] = ""
    else:
        del fields["pinned"]  # keys that were made before there was this field stay what they are
    return encode(fields)


def identity_digest(identity: Identity) -> bytes:
    """Return the sha256 (32 bytes) of what of an identity is part of keys."""
    return hashlib.sha256(encode_identity(identity)).digest()


def request_key(identity: bytes, request: bytes) -> bytes:
    """Return the key (32 bytes) of a canonical request to the model with this identity digest."""
    return hashlib.sha256(b"\0".join((KEY_VERSION, identity, request))).digest()
