"""`Cells`: the cells of a study's design that each question belongs to, by which a model can be given an effect."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from .canonical import encode
from .records import AnyResponse, Request

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DIGEST_BYTES = 16


class Alternative(msgspec.Struct, frozen=True, array_like=True):
    """A possible answer to a question."""

    text: str
    up: bool
    """Whether it raises what the study measures."""


class LevelColumn(msgspec.Struct, frozen=True, array_like=True):
    """A factor or part of a design: its levels, and which of them each cell has."""

    levels: tuple[str, ...]
    packed: bytes

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Return the index of the level of each cell; -1 where it has none."""
        return _integers(self.packed)


class Cells(msgspec.Struct, frozen=True, dict=True):
    """The cells of a design, the question that asks each, and the answers that raise its measure.

    It is plain data, so that it travels to workers. `prejudge.design` makes it of a declared stage.
    """

    form: str
    """Form of an answer, as `AnswerForm` names it."""
    columns: dict[str, LevelColumn]
    groups: tuple[str, ...]
    """The compared factors among the columns."""
    contexts: tuple[str, ...]
    controls: dict[str, tuple[str, ...]]
    """Levels of groups and contexts that are asked beside the others, and are not compared."""
    menus: tuple[tuple[Alternative, ...], ...]
    """The distinct sets of possible answers."""
    packed_menus: bytes
    """Index of each cell's set."""
    packed_questions: bytes
    """Digest of each cell's question."""

    @property
    def size(self) -> int:
        """Return the number of cells."""
        return len(self.packed_questions) // DIGEST_BYTES

    @cached_property
    def digest(self) -> str:
        """Return the sha256 of all of it: what answers that are planted by cells depend on."""
        return f"sha256:{hashlib.sha256(msgspec.msgpack.encode(self)).hexdigest()}"

    @cached_property
    def menu_codes(self) -> npt.NDArray[np.int32]:
        """Return the index of each cell's set of answers."""
        return _integers(self.packed_menus)

    @cached_property
    def _rows(self) -> dict[bytes, tuple[int, ...]]:
        rows: dict[bytes, tuple[int, ...]] = {}
        data = self.packed_questions
        for row in range(self.size):
            question = data[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]
            rows[question] = (*rows.get(question, ()), row)
        return rows

    @property
    def shared(self) -> int:
        """Return how many questions belong to several cells."""
        return sum(len(rows) > 1 for rows in self._rows.values())

    def locate(self, question: Request) -> tuple[int, ...]:
        """Return the cells that a question belongs to, by place in the design; none if it is not of the design."""
        return self._rows.get(question_digest(question), ())


class ComputedResponses:
    """The responses of a model in closed form to many requests."""

    def __init__(
        self, responses: Callable[[], Sequence[AnyResponse]], numbers: npt.NDArray[np.float64] | None = None
    ) -> None:
        """Take what makes the responses, and the numbers that they are of, where they are such."""
        self._made, self.numbers = responses, numbers
        """Shape (requests, numbers): the log-probability of each text, or the probability of each label."""

    @cached_property
    def responses(self) -> Sequence[AnyResponse]:
        """Return them, made when first asked for."""
        return self._made()


class LocatedRequests:
    """Requests of a design with the cells of each, which many models are asked in turn."""

    def __init__(self, cells: Cells, requests: Sequence[Request]) -> None:
        """Find the cells of each request."""
        self.requests = tuple(requests)
        self.rows = [cells.locate(request) for request in self.requests]
        self.inside = all(self.rows)
        """Whether every request is of the design."""

    @cached_property
    def encoded(self) -> list[bytes]:
        """Return the requests as JSON."""
        return [msgspec.json.encode(request) for request in self.requests]

    def means(self, effects: npt.NDArray[np.float64]) -> list[float]:
        """Return the mean of the effects in the cells of each request; `effects` has one per cell of the design."""
        means: list[float] = effects[[rows[0] for rows in self.rows]].tolist()
        for at, rows in enumerate(self.rows):
            if len(rows) > 1:
                means[at] = float(effects[list(rows)].mean())
        return means


def question_digest(request: Request) -> bytes:
    """Return the digest of a request, the same for every attempt."""
    if getattr(request, "attempt", 0):
        request = msgspec.structs.replace(request, attempt=0)
    return hashlib.blake2b(encode(request), digest_size=DIGEST_BYTES).digest()


def _integers(packed: bytes) -> npt.NDArray[np.int32]:
    import numpy as np  # only a model with a planted effect needs it: the contracts load without

    return np.frombuffer(packed, np.int32)


@runtime_checkable
class ClosedForm(Protocol):
    """A model whose answers are a formula of what is planted in a declared design.

    A calibration asks thousands of such models the same requests, whose cells and texts are worked out once.
    """

    def in_closed_form(self, located: LocatedRequests) -> ComputedResponses | None:
        """Return the responses to requests, those of the adapter's `answer`; None: ask for them."""
