"""What driver and workers tell each other: records in MessagePack, requests and responses in their canonical encoding.

None of it is a pickle: a worker is believed no more than its answers. Ray's own messages around it are pickles, so
whoever may join a cluster of Ray may run code on all of its machines.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any, TypeAlias

import msgspec

from ..contracts import errors
from ..contracts.abilities import Abilities
from ..contracts.adapter import Identity, Limits, ModelAdapter, abilities_of
from ..contracts.canonical import decode_response, encode_response
from ..contracts.errors import DataError, ModelError, PermanentError, PrejudgeError
from ..contracts.records import AnyResponse, Response
from ..contracts.version import VERSION

MEMORY = frozenset({"MemoryError", "OutOfMemoryError"})
"""Names of exceptions of which a fresh process may be free."""
LIBRARIES = ("numpy", "torch", "transformers")
"""Packages whose versions may change what a model computes; what an adapter knows of others is in its identity."""
_PLAIN = (str, int, float, bool, type(None))


class Told(msgspec.Struct, frozen=True, tag="error"):
    """An error of the tree."""

    kind: str
    message: str
    values: dict[str, Any]
    """Its attributes: code, fields, `retry_after` ..."""


class Model(msgspec.Struct, frozen=True):
    """A model to be made: its class and its settings."""

    target: str
    """`module:Class`."""
    options: bytes


class Described(msgspec.Struct, frozen=True):
    """What a worker's instance says of itself."""

    identity: Identity
    limits: Limits
    abilities: Abilities


class Open(msgspec.Struct, frozen=True, tag=True):
    """Make these models, by name."""

    models: dict[str, Model]
    beat_seconds: float


class Bind(msgspec.Struct, frozen=True, tag=True):
    """Take the services of a run: those named are the driver's."""

    model: str
    services: list[str]


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Answer requests of one kind."""

    call: int
    model: str
    requests: list[bytes]
    again: dict[int, int]
    """How often a request was answered before, by its place; where that is not 0."""


class Given(msgspec.Struct, frozen=True, tag=True):
    """What a service gave."""

    need: int
    data: bytes = b""
    error: Told | None = None


class End(msgspec.Struct, frozen=True, tag=True):
    """Close the models and end."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    """A worker's first word: the versions of what answers depend on."""

    versions: dict[str, str]


class Opened(msgspec.Struct, frozen=True, tag=True):
    """The models are made."""

    models: dict[str, Described]


class Answered(msgspec.Struct, frozen=True, tag=True):
    """The answers of a call, in order: canonical bytes, or an error."""

    call: int
    answers: list[bytes | Told]
    limits: Limits


class Raised(msgspec.Struct, frozen=True, tag=True):
    """An error of the tree that a call raised, or (call 0) the making of the models."""

    call: int
    error: Told


class Broke(msgspec.Struct, frozen=True, tag=True):
    """Another exception, by its name."""

    call: int
    name: str
    text: str


class Need(msgspec.Struct, frozen=True, tag=True):
    """A service is called: `blobs` with a digest, `keep` with bytes and their media type, `cells` with nothing."""

    need: int
    model: str
    service: str
    text: str
    data: bytes = b""


class Beat(msgspec.Struct, frozen=True, tag=True):
    """The worker's event loop goes round."""


ToWorker: TypeAlias = Open | Bind | Ask | Given | End
ToDriver: TypeAlias = Hello | Opened | Answered | Raised | Broke | Need | Beat
pack = msgspec.msgpack.Encoder().encode
to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
to_driver: msgspec.msgpack.Decoder[ToDriver] = msgspec.msgpack.Decoder(ToDriver)


def versions() -> dict[str, str]:
    """Return the versions, of Python and of packages, in which two processes of a run must agree."""
    found = {"prejudge": VERSION, "Python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def describe(adapter: ModelAdapter) -> Described:
    """Return what the driver needs to know of an instance."""
    return Described(adapter.identity, adapter.limits, abilities_of(adapter))


def tell(error: PrejudgeError) -> Told:
    """Return an error as it travels; a plugin's own kind becomes the nearest one of the tree."""
    known = dict(_tree(PrejudgeError))
    kind = next(one.__name__ for one in type(error).__mro__ if known.get(one.__name__) is one)
    values = {name: _plain(value) for name, value in (error.__dict__ | {"code": error.code}).items()}
    return Told(kind, str(error), values)


def hear(told: Told) -> PrejudgeError:
    """Return the error that was told."""
    values = dict(told.values)
    if fields := values.get("fields"):
        values["fields"] = {name: tuple(one) if isinstance(one, list) else one for name, one in fields.items()}
    return errors.restored(dict(_tree(PrejudgeError))[told.kind], (told.message,), values)


def pack_answer(answer: AnyResponse | ModelError, adapter: str) -> bytes | Told:
    """Return an answer as it travels; one that cannot be stored exactly is the failure that it would be later."""
    if isinstance(answer, ModelError):
        return tell(answer)
    if not isinstance(answer, Response):
        said = f"the adapter {adapter!r} gave {type(answer).__name__}."
        return tell(PermanentError(said, code="model.exception"))
    try:
        return encode_response(answer)
    except DataError as error:
        return tell(PermanentError(str(error), code="model.response"))


def unpack_answer(packed: bytes | Told) -> AnyResponse | ModelError:
    """Return an answer that travelled."""
    if not isinstance(packed, Told):
        return decode_response(packed)
    error = hear(packed)
    return error if isinstance(error, ModelError) else PermanentError(str(error), code=error.code)


def _tree(kind: type[PrejudgeError]) -> Iterator[tuple[str, type[PrejudgeError]]]:
    """Yield the errors of this package by name; those of plugins are not known everywhere."""
    yield kind.__name__, kind
    for one in kind.__subclasses__():
        if one.__module__ == errors.__name__:
            yield from _tree(one)


def _plain(value: Any) -> Any:
    """Return a value in what MessagePack has."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one) for one in value]
    return str(value)
