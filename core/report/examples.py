"""The exchanges behind a number, as a report shows them: texts, and images made small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..contracts import Example
from ..contracts.canonical import decode_request, decode_response
from ..contracts.errors import DataError
from ..contracts.records import AnyRequest, AnyResponse
from ..store import Store, used_answers
from . import MOST_EXAMPLES, Picture, ShownExample, picture, within
from .exchanges import show_images, show_request, show_response

Exchange = tuple[AnyRequest, AnyResponse]


def show_examples(examples: Sequence[Example], store: Store, run_id: int) -> list[ShownExample]:
    """Return the examples with the texts and the names of the images of the exchanges that the run used."""
    keys = {key for example in examples[:MOST_EXAMPLES] for key in example.keys}
    used = used_answers(store, run_id, keys)
    rows = store.exchanges(used.values())
    exchanges = {number: (decode_request(request), decode_response(response)) for number, request, response in rows}
    by_key = {key: exchanges[number] for key, number in used.items()}
    return [_shown(example, [by_key[key] for key in example.keys if key in by_key]) for example in examples]


def show_pictures(examples: Iterable[ShownExample], store: Store) -> dict[str, Picture]:
    """Return the images of the examples by sha256, as small as a page needs them."""
    names = dict.fromkeys(sha256 for example in examples for _, sha256 in example.images)
    return within((sha256, _picture(store, sha256)) for sha256 in names)


def _shown(example: Example, exchanges: Sequence[Exchange]) -> ShownExample:
    texts = tuple(text for asked, said in exchanges for text in (*show_request(asked), *show_response(said)))
    return ShownExample(example, texts, tuple(image for exchange in exchanges for image in show_images(*exchange)))


def _picture(store: Store, sha256: str) -> Picture:
    try:
        return picture(store.blob(sha256))
    except DataError as error:
        return Picture(problem=str(error).rstrip("."))
