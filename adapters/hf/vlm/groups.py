"""Group requests that share their images and the tokens before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ....core.contracts.errors import ModelError
from ....core.contracts.records import Prompt
from ...shared.images import Blobs, open_image
from .prompt import Encoded, images_of

H = TypeVar("H")


class Held(NamedTuple):
    """The images of a prompt."""

    names: tuple[str, ...]
    """Their sha256."""
    pictures: list[Any]
    prompts: dict[str, Encoded]
    """What was encoded with them, by its text: repeats of a question are encoded once."""


class Asked(NamedTuple):
    """A prompt with the names of its images."""

    images: tuple[str, ...]
    prompt: Encoded


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
    errors: dict[int, ModelError],
) -> Iterator[list[Work[H]]]:
    """Yield the works of all requests, those with the same images and the same tokens before them together.

    Images are opened when their turn comes, so that few are in memory. `errors` receives, by number, those of requests
    that cannot be planned; a request that has one is left out from then on.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, prompt in enumerate(prompts):
        groups.setdefault(images_of(prompt), []).append(number)
    for names, numbers in groups.items():
        try:
            held = Held(names, [open_image(sha256, blobs) for sha256 in names], {})
        except ModelError as error:
            errors.update(dict.fromkeys(numbers, error))
            continue
        for part in _by_stem(_plan_all(numbers, held, plan, errors)):
            if works := [work for work in part if work.request not in errors]:
                yield works


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
