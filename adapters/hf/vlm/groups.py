"""Group requests that share their images and the tokens before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ....core.contracts.errors import ModelError
from ....core.contracts.records import Prompt
from ...shared.images import Blobs, decode_image, fetch_image
from .engine import Asked
from .prompt import images_of

H = TypeVar("H")


class Held(NamedTuple):
    """The images of a prompt."""

    names: tuple[str, ...]
    """Their sha256."""
    pictures: list[Any]


class Work(NamedTuple, Generic[H]):
    """One text to run: a prompt, or a prompt with one of its continuations."""

    request: int
    """Number of the request it belongs to."""
    asked: Asked
    how: H
    """The task: how to answer, or what to score."""


def by_image(
    prompts: Sequence[Prompt],
    blobs: Blobs | None,
    plan: Callable[[int, Held], list[Work[H]]],
    answer: Callable[[Sequence[Work[H]]], None],
) -> dict[int, ModelError]:
    """Hand the works of all requests to `answer`, those with the same images and the same tokens before them together.

    Returns:
        The errors of requests that could not be planned or answered, by number.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, prompt in enumerate(prompts):
        groups.setdefault(images_of(prompt), []).append(number)
    errors: dict[int, ModelError] = {}
    for names, numbers in groups.items():
        try:
            held = Held(names, [open_image(sha256, blobs) for sha256 in names])
        except ModelError as error:
            errors.update(dict.fromkeys(numbers, error))
            continue
        works = _plan_all(numbers, held, plan, errors)
        for part in _by_stem(works):
            _answer_part([work for work in part if work.request not in errors], answer, errors)
    return errors


def _plan_all(
    numbers: Sequence[int], held: Held, plan: Callable[[int, Held], list[Work[H]]], errors: dict[int, ModelError]
) -> list[Work[H]]:
    works = []
    for number in numbers:
        try:
            works += plan(number, held)
        except ModelError as error:
            errors[number] = error
    return works


def _by_stem(works: Sequence[Work[H]]) -> list[list[Work[H]]]:
    stems: dict[tuple[int, ...], list[Work[H]]] = {}
    for work in works:
        stems.setdefault(work.asked.prompt.ids[: work.asked.prompt.stem], []).append(work)
    return list(stems.values())


def _answer_part(
    works: Sequence[Work[H]], answer: Callable[[Sequence[Work[H]]], None], errors: dict[int, ModelError]
) -> None:
    try:
        if works:
            answer(works)
    except ModelError as error:
        errors.update(dict.fromkeys((work.request for work in works), error))


def open_image(sha256: str, blobs: Blobs | None) -> Any:
    """Return an image in RGB, upright as its EXIF data say, at its own size; of an animation the first frame.

    Raises:
        PermanentError: there are no bytes of that name, they are no image, or they unpack to too many pixels.
    """
    return decode_image(sha256, fetch_image(sha256, blobs), _upright)


def _upright(image: Any) -> Any:
    from PIL import ImageOps

    return ImageOps.exif_transpose(image).convert("RGB")
