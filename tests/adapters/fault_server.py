"""A local server that speaks OpenAI's API, answers from a tiny made-up model, and fails in every way it is told to.

It runs in a thread of its own. `server.plan` says what to do with the next requests; when it is empty, requests are
answered well. Everything that arrives is in `server.seen`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from prejudge.core.contracts.png import encode_png

Json = dict[str, Any]
BOS = "<s>"


@dataclass
class Answer:
    """What to send, or how to fail."""

    status: int = 200
    body: Json | bytes | str = b""
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    delay: float = 0.0
    cut: bool = False
    """Close the connection before the first byte."""
    half: bool = False
    """Close it in the middle of the body."""

    @property
    def raw(self) -> bytes:
        if isinstance(self.body, dict):
            return json.dumps(self.body).encode()
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass
class Seen:
    """A request that arrived."""

    path: str
    headers: Mapping[str, str]
    """Looked up in any case."""
    body: Json


class FaultServer:
    """The server; `url` is its base url."""

    def __init__(self, tls: Any = None) -> None:
        self.plan: list[Answer] = []
        self.model: Callable[[str, Json], Json] = answer_well
        self.seen: list[Seen] = []
        self.delay = 0.0
        self.busy = self.most_busy = 0
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._started.wait(10)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = self._loop.run_until_complete(self._start())
        self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _start(self) -> web.AppRunner:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self.port = runner.addresses[0][1]
        return runner

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"{}")
        path = request.path.removeprefix("/v1")
        self.seen.append(Seen(path, request.headers.copy(), body))
        answer = self.plan.pop(0) if self.plan else Answer(body=self.model(path, body), delay=self.delay)
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            await asyncio.sleep(answer.delay)
        finally:
            self.busy -= 1
        return await self._send(request, answer)

    async def _send(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        assert request.transport is not None
        if answer.cut:
            request.transport.abort()
            return web.Response()
        if answer.half:
            response = web.StreamResponse(headers={"Content-Length": str(len(answer.raw))})
            response.content_type = answer.content_type
            await response.prepare(request)
            await response.write(answer.raw[: len(answer.raw) // 2])
            request.transport.abort()
            return response
        return web.Response(
            status=answer.status, body=answer.raw, headers=answer.headers, content_type=answer.content_type
        )


def problem(code: str | None, message: str = "as told", kind: str = "error") -> Json:
    """Return an error body as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "code": code, "param": None}}


def chat(content: str | list[Json] | None, finish: str = "stop", **message: Any) -> Json:
    """Return a chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}


def answer_well(path: str, body: Json) -> Json:
    """Answer from the made-up model."""
    made = {
        "/chat/completions": _chat,
        "/completions": _completion,
        "/embeddings": _embedding,
        "/images/generations": _image,
        "/decisions": _decision,
        "/systemone": _systemone,
    }
    return made[path](body)


def tokens_of(text: str) -> list[str]:
    """Split a text; a word goes with the blank before it, and `ing` is a token of its own."""
    return re.findall(r" ?(?:(?!ing)\w)+|ing|\s|[^\w\s]", text)


def log_probability(before: str, token: str) -> float:
    """Return the made-up model's log-probability of a token after a text."""
    digest = hashlib.sha256(f"{before}|{token}".encode()).digest()
    return -0.01 - int.from_bytes(digest[:2], "big") / 6553.6


def scored(text: str) -> list[tuple[str, float | None]]:
    """Return the tokens of a text behind a BOS, each with its log-probability given those before it."""
    found: list[tuple[str, float | None]] = [(BOS, None)]
    before = BOS
    for token in tokens_of(text):
        found.append((token, log_probability(before, token)))
        before += token
    return found


def expected(prompt: str, continuation: str) -> list[float]:
    """Return the log-probabilities a continuation should get: of every token that holds a character of it."""
    found, end = [], 0
    for token, value in scored(prompt + continuation)[1:]:
        end += len(token)
        if end > len(prompt):
            assert value is not None
            found.append(value)
    return found


def _chat(body: Json) -> Json:
    last = body["messages"][-1]["content"]
    text = last if isinstance(last, str) else " ".join(part.get("text", "[image]") for part in last)
    made = chat(text.upper())
    if body.get("logprobs"):
        top = {token: log_probability(text, token) for token in ("A", "B", "C")}
        alternatives = [{"token": token, "logprob": value} for token, value in top.items()]
        made["choices"][0]["logprobs"] = {
            "content": [{"token": "A", "logprob": top["A"], "top_logprobs": alternatives}]
        }
    if "prompt_logprobs" in body:
        template = "".join(f"[{m['role']}] {m['content']}\n" for m in body["messages"][:-1])
        made["prompt_logprobs"] = _prompt_logprobs(f"{template}[assistant]{last}")
    return made


def _prompt_logprobs(text: str) -> list[Json | None]:
    return [
        None if value is None else {str(place): {"logprob": value, "rank": 1, "decoded_token": token}}
        for place, (token, value) in enumerate(scored(text))
    ]


def _completion(body: Json) -> Json:
    prompt, choice = body["prompt"], {"index": 0, "text": " end", "finish_reason": "length"}
    count = len(scored(prompt))
    if body.get("echo"):
        pairs = [*scored(prompt), (" end", -1.5)]
        choice["text"] = prompt + " end"
        choice["logprobs"] = {
            "tokens": [token for token, _ in pairs],
            "token_logprobs": [value for _, value in pairs],
            "top_logprobs": [None] * len(pairs),
        }
    elif body.get("logprobs"):
        top = {token: log_probability(prompt, token) for token in (" yes", " no", " end")}
        choice["logprobs"] = {"tokens": [" end"], "token_logprobs": [top[" end"]], "top_logprobs": [top]}
    if "prompt_logprobs" in body:
        choice["prompt_logprobs"] = _prompt_logprobs(prompt)
    usage = {"prompt_tokens": count, "completion_tokens": 1, "total_tokens": count + 1}
    return {"choices": [choice], "usage": usage}


def _embedding(body: Json) -> Json:
    digest = hashlib.sha256(body["input"].encode()).digest()
    vector = [value / 255 for value in digest[:8]]
    return {"data": [{"embedding": vector, "index": 0}], "usage": {"prompt_tokens": 4, "total_tokens": 4}}


def _image(body: Json) -> Json:
    colour = hashlib.sha256(f"{body['prompt']}|{body.get('seed')}".encode()).digest()[:3]
    return {"data": [{"b64_json": base64.b64encode(picture(colour)).decode()}]}


def _decision(body: Json) -> Json:
    (question,) = body["questions"]
    values = [choice["value"] for choice in question["choices"]]
    shares = [{"value": value, "probability": 1 / len(values)} for value in values]
    return {"answers": [{"type": "choice", "name": question["name"], "probabilities": shares}]}


def _systemone(body: Json) -> Json:
    ((name, question),) = body["questions"].items()
    shares = dict.fromkeys(question["criteria"], 1 / len(question["criteria"]))
    return {"answers": {name: {"type": "choice", "probabilities": shares}}, "usage": {"input_tokens": 9}}


def picture(colour: bytes = b"\x80\x80\x80", side: int = 8) -> bytes:
    """Return a PNG of one colour."""
    return encode_png(colour * side * side, side, side)
