"""Endpoints that answer every request and drop a part of it: `server.play(cached(by="prompt"))`.

Each function returns a behaviour of its own, since some remember what was asked before.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace

from .behaviours import Behaviour, scores
from .http import Call, Json, Reply


def ignored(*fields: str, answer: Callable[[Json], Json]) -> Behaviour:
    """Answer by `answer` as if fields of the body were not there, such as `temperature` or `seed`."""

    def reply(call: Call) -> Reply:
        return replace(call.well, body=answer({k: v for k, v in call.body.items() if k not in fields}))

    return Behaviour("ignored", "answer", reply)


def cached(by: str = "body") -> Behaviour:
    """Answer as a cache does: a `body`, or the messages of a body (`prompt`), get the answer they got first."""
    known: dict[str, Reply] = {}

    def reply(call: Call) -> Reply:
        what = call.body if by == "body" else call.body.get("messages", call.body.get("prompt"))
        return known.setdefault(json.dumps(what, sort_keys=True), call.well)

    return Behaviour(f"cached-by-{by}", "answer", reply)


def over_limit(times: int = 3) -> Behaviour:
    """Count so many times the tokens that the request allowed."""

    def change(body: Json, call: Call) -> None:
        limit: int = call.body.get("max_tokens") or call.body.get("max_completion_tokens") or 1
        body["usage"] = {**body.get("usage", {}), "completion_tokens": times * limit}

    return _edited("over-limit", change)


def stop_left() -> Behaviour:
    """Write on behind the first stop text."""

    def change(body: Json, call: Call) -> None:
        message = body["choices"][0]["message"]
        message["content"] = f"{message['content']}{call.body.get('stop', [''])[0]}and so on"

    return _edited("stop-left", change)


def cut_prompt(tokens: int, characters_per_token: float = 4.0) -> Behaviour:
    """Read so many tokens of a prompt, and answer as if that were all of it."""

    def change(body: Json, call: Call) -> None:
        long = len(json.dumps(call.body.get("messages", call.body.get("prompt"))))
        read = min(tokens, round(long / characters_per_token))
        body["usage"] = {**body.get("usage", {}), "prompt_tokens": read}

    return _edited("cut-prompt", change)


def named(*names: str, each: int = 1, field: str = "model") -> Behaviour:
    """Name a model (or a `system_fingerprint`) in replies; after so many answers the next one, and then the last."""
    count = 0

    def change(body: Json, call: Call) -> None:
        nonlocal count
        body[field] = names[min(count // each, len(names) - 1)]
        count += 1

    return _edited("named", change)


def scored(change: Callable[[float], float]) -> Behaviour:
    """Change every log-probability, wherever it stands: `lambda value: round(value, 1)`."""
    return Behaviour("scored", "answer", scores(change))


def _edited(name: str, change: Callable[[Json, Call], object]) -> Behaviour:
    def reply(call: Call) -> Reply:
        body = copy.deepcopy(call.well.body)
        if isinstance(body, dict) and body.get("choices"):
            change(body, call)
        return replace(call.well, body=body)

    return Behaviour(name, "answer", reply)
