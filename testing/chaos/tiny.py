"""A tiny made-up model that speaks OpenAI's API; what it answers, and how likely a text is to it, can be computed."""

from __future__ import annotations

import base64
import hashlib
import random
import re
from typing import Any

from ...core.contracts.png import encode_png
from .http import Json

_OPEN = re.compile(r"Write \w+ random ")
"""The beginning of a question that has no one answer."""
BOS = "<s>"
"""The token before every text."""


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
    made = chat(_drawn(text, body) if _OPEN.match(text) else text.upper())
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


def _drawn(text: str, body: Json) -> str:
    """Draw twenty made-up words, at temperature 0 always the same ones; the model is sure of all its other answers."""
    hot = body.get("temperature", 1.0) > 0
    numbers = random.Random(body.get("seed") if hot else text)
    return " ".join(f"{numbers.randrange(16**6):06x}" for _ in range(20))


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
