"""The samples of a log of inspect_ai, as records of answers.

Source of the format: https://inspect.aisi.org.uk/reference/inspect_ai.log.html (`EvalLog`, `EvalSample`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contracts.errors import DataError

Record = dict[str, Any]
EPOCH = "epoch"
"""Column of the number of a repetition of a question."""
ERROR = "error"
"""Column of why a question has no answer."""
FILTERED = "content_filter"
"""Why a model stopped whose answer was withheld."""


def is_log(document: Any) -> bool:
    """Return whether a JSON document is a log of inspect_ai."""
    return isinstance(document, Mapping) and "eval" in document and "samples" in document and "version" in document


def samples_of(path: str, document: Mapping[str, Any]) -> list[Record]:
    """Return a record per sample and epoch: its metadata, what the model was asked, and its answer or its error.

    Raises:
        DataError: the log has no samples, or one is of another form.
    """
    samples = document["samples"]
    if not isinstance(samples, list) or not all(isinstance(sample, dict) for sample in samples):
        raise DataError(
            f"{path}: the log has no list of samples. Write it with its samples: `inspect log dump`.",
            code="data.syntax",
        )
    return [_record(sample) for sample in samples]


def _record(sample: Mapping[str, Any]) -> Record:
    output = _mapping(sample.get("output"))
    choice = next(iter(output.get("choices") or ()), None)
    error = _mapping(sample.get(ERROR)).get("message") or output.get(ERROR)
    text = None if error or choice is None else output.get("completion", _text(_mapping(choice.get("message"))))
    metadata = _mapping(sample.get("metadata"))
    named = metadata or {"trial": sample.get("id")}
    record = {**named, "id": sample.get("id"), EPOCH: sample.get(EPOCH, 1), "response": text}
    if (request := _request(sample)) is not None:
        record["request"] = request
    if error:
        record[ERROR] = str(error)
    elif choice is not None and choice.get("stop_reason") == FILTERED:
        record["status"] = "filtered"
    return record


def _request(sample: Mapping[str, Any]) -> Any:
    """Return what the model was asked: a text, or messages with roles; None where it is not in words alone."""
    messages = sample.get("messages") or []
    answers = [at for at, message in enumerate(messages) if _mapping(message).get("role") == "assistant"]
    asked = messages[: answers[-1]] if answers else messages
    asked = asked or sample.get("input")
    if not isinstance(asked, list):
        return asked if isinstance(asked, str) and asked else None
    texts = [(_mapping(message).get("role"), _text(_mapping(message))) for message in asked]
    if any(text is None for _, text in texts):
        return None
    if [role for role, _ in texts] == ["user"]:
        return texts[0][1]
    return [{"role": role, "content": text} for role, text in texts]


def _text(message: Mapping[str, Any]) -> str | None:
    """Return the text of a message; None where it has other content, such as images."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content
        ]
        return None if None in texts else "\n".join(map(str, texts))
    return content if isinstance(content, str) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
