"""An endpoint under the kit's control: it answers as a rule wants, and keeps all that was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .chaos import Behaviour, ChaosServer
from .chaos.http import Call, Reply


class StandIn(ChaosServer):
    """A local endpoint of any API; use it in a `with`."""

    def __init__(self, reply: Callable[[Call], Reply]) -> None:
        super().__init__(lambda path, body: {})
        self.calls: list[Call] = []
        """All that was asked, in order."""
        self.address = self.url.removesuffix("/v1")
        self._reply = reply
        self.play(Behaviour("own", "", self._answer_call))

    def _answer_call(self, call: Call) -> Reply:
        self.calls.append(call)
        return self._reply(call)


def asked(call: Call) -> tuple[str, bytes]:
    """Return what two calls have in common that ask the same."""
    return call.target, call.raw


def holds(call: Call, wanted: str | float) -> bool:
    """Return whether a text or a number is in the path, the query or the body of a call."""
    if isinstance(wanted, str):
        return wanted in call.target or any(wanted in value for value in _values(call) if isinstance(value, str))
    return any(_number(value) == wanted for value in _values(call))


def digest(call: Call) -> str:
    """Return a digest of what was asked; the order of names in a body does not matter."""
    try:
        body = json.dumps(json.loads(call.raw), sort_keys=True).encode()
    except ValueError:
        body = call.raw
    return hashlib.sha256(f"{call.target} ".encode() + body).hexdigest()[:16]


def _values(call: Call) -> list[Any]:
    """Return all texts and numbers in the query and in the body, in their order."""
    query = [value for _, value in parse_qsl(urlsplit(call.target).query)]
    try:
        return [*query, *_leaves(json.loads(call.raw))]
    except ValueError:
        text = call.raw.decode("utf-8", "replace")
        return [*query, *(value for _, value in parse_qsl(text)), text]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
