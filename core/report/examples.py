"""The exchanges behind a number, for the report: texts, and images as thumbnails."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..contracts import Example
from ..contracts.canonical import decode_request, decode_response
from ..contracts.errors import DataError
from ..contracts.records import (
    AnyRequest,
    AnyResponse,
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    Message,
    Prompt,
    PseudoLikelihood,
    Text,
    TokenScores,
)
from ..engine.reading import as_read
from ..store import Store, used_answers
from . import MOST_EXAMPLES, Picture, ShownExample, picture, within

EMPTY = "(empty: there is no text)"


def show_request(request: AnyRequest) -> list[tuple[str, str]]:
    """Return (label, text) pairs of a request."""
    match request:
        case PseudoLikelihood() | Embed():
            return [("sentence", request.text)]
        case Classify():
            return [("text", request.text)] + ([("paired with", request.pair)] if request.pair is not None else [])
        case Generate():
            return _show_messages(request.messages)
        case Likelihood():
            return [*_show_prompt(request.prompt), *(("continuation", text) for text in request.continuations)]
        case Draw():
            return [("prompt", request.prompt)]


def show_response(response: AnyResponse) -> list[tuple[str, str]]:
    """Return (label, text) pairs of a response, as it is read."""
    match response := as_read(response):
        case TokenScores():
            return [("log-probability", f"{response.log_probability:.3f} over {response.count} tokens")]
        case Generation():
            thoughts = [("reasoning", response.reasoning)] if response.reasoning else []
            raw = [("raw reply", response.reply)] if response.reply else []
            return [*thoughts, ("answer", response.text), *raw]
        case Likelihoods():
            return [("log-probabilities", ", ".join(f"{score.log_probability:.3f}" for score in response.scores))]
        case Classification():
            shares = ("probabilities", ", ".join(f"{k}: {v:.3f}" for k, v in response.probabilities.items()))
            return [shares, ("answer", response.text)] if response.text else [shares]
        case Drawing():
            return [("image", response.image or "none: filtered")]
        case _:
            return []


def show_images(request: AnyRequest, response: AnyResponse) -> list[tuple[str, str]]:
    """Return (label, sha256) pairs of the input images and of the generated image."""
    messages: Prompt = ()
    match request:
        case Generate():
            messages = request.messages
        case Likelihood():
            messages = request.prompt
    seen = [
        part.sha256
        for message in messages
        if isinstance(message, Message)
        for part in message.parts
        if isinstance(part, Image)
    ]
    drawn = [response.image] if isinstance(response, Drawing) and response.image is not None else []
    return [*(("image shown", sha256) for sha256 in seen), *(("image drawn", sha256) for sha256 in drawn)]


def _show_prompt(prompt: Prompt) -> list[tuple[str, str]]:
    return [("prompt", prompt)] if isinstance(prompt, str) else _show_messages(prompt)


def _show_messages(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [
        (message.role, part.text if isinstance(part, Text) else f"[image {part.sha256[:12]}]")
        for message in messages
        for part in message.parts
    ]


Exchange = tuple[AnyRequest, AnyResponse]
NOT_RECORDED = (
    "not recorded",
    "The file of these answers does not state for every answer what was asked. Where it does not, this is the question "
    "of the study, in its words.",
)
"""(label, text) before a request of imported answers."""


def request_notes(unrecorded: Collection[str]) -> list[tuple[str, str]]:
    """Return what to say before a request of a run; `unrecorded`: what its manifest says that nobody recorded."""
    return [NOT_RECORDED] if "request" in unrecorded else []


def show_examples(
    examples: Sequence[Example], store: Store, run_id: int, unrecorded: Collection[str] = ()
) -> list[ShownExample]:
    """Return the examples with texts and image names of the exchanges that the run used."""
    keys = {key for example in examples[:MOST_EXAMPLES] for key in example.keys}
    used = used_answers(store, run_id, keys)
    rows = store.exchanges(used.values())
    exchanges = {number: (decode_request(request), decode_response(response)) for number, request, response in rows}
    by_key = {key: exchanges[number] for key, number in used.items()}
    notes = request_notes(unrecorded)
    return [_shown(example, [by_key[key] for key in example.keys if key in by_key], notes) for example in examples]


def show_pictures(examples: Iterable[ShownExample], store: Store) -> dict[str, Picture]:
    """Return thumbnails of the examples' images by sha256."""
    names = dict.fromkeys(sha256 for example in examples for _, sha256 in example.images)
    return within((sha256, _picture(store, sha256)) for sha256 in names)


def _shown(example: Example, exchanges: Sequence[Exchange], notes: Sequence[tuple[str, str]]) -> ShownExample:
    texts = [*notes] + [text for asked, said in exchanges for text in (*show_request(asked), *show_response(said))]
    told = tuple((label, text if text.strip() else EMPTY) for label, text in texts)
    return ShownExample(example, told, tuple(image for exchange in exchanges for image in show_images(*exchange)))


def _picture(store: Store, sha256: str) -> Picture:
    try:
        return picture(store.blob(sha256))
    except DataError as error:
        return Picture(problem=str(error).rstrip("."))
