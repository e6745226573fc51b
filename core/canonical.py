"""The canonical encoding of a record, and the key of an exchange.

Key = sha256(version tag, identity digest, canonical request). The encoding is JSON with sorted names, no spaces, and
defaults left out; text is kept as it is, without unicode normalisation. Equal requests encode equally in every
process; whatever changes an answer changes the key, and nothing else does.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from .adapter import Identity
from .errors import DataError
from .records import AnyRequest, AnyResponse

KEY_VERSION = b"prejudge-key-1"
KEY_BYTES = 32

_encoder = msgspec.json.Encoder(order="sorted")
_requests: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
_responses: msgspec.json.Decoder[AnyResponse] = msgspec.json.Decoder(AnyResponse)


def encode(record: Any) -> bytes:
    """Encode a record canonically, as UTF-8 JSON.

    Raises:
        DataError: the record holds text that is not valid unicode (a lone surrogate).
    """
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError as error:
        raise DataError(f"text is not valid unicode: {error}. Replace the lone surrogate.") from None


def encode_response(response: AnyResponse) -> bytes:
    """Encode a response, and make sure that it reads back as it was.

    Raises:
        DataError: a value cannot be stored exactly, such as a log-probability that is not finite.
    """
    encoded = encode(response)
    try:
        same = _responses.decode(encoded) == response
    except msgspec.ValidationError:
        same = False
    if not same:
        raise DataError(f"the model's response cannot be stored exactly (a value that is not finite?): {response!r}")
    return encoded


def decode_request(encoded: bytes | str) -> AnyRequest:
    """Read a request back from its canonical encoding."""
    return _requests.decode(encoded)


def decode_response(encoded: bytes | str) -> AnyResponse:
    """Read a response back from its canonical encoding."""
    return _responses.decode(encoded)


def identity_digest(identity: Identity) -> bytes:
    """Return the sha256 of an identity's canonical encoding (32 bytes)."""
    return hashlib.sha256(encode(identity)).digest()


def request_key(identity: bytes, request: bytes) -> bytes:
    """Return the key (32 bytes) of a canonical request to the model with this identity digest."""
    return hashlib.sha256(b"\0".join((KEY_VERSION, identity, request))).digest()
