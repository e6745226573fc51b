"""Two models of the baseline: one whose answers are written down, some of them spoilt, and one that repeats them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Options
from prejudge.core.contracts.abilities import OPERATIONS, Abilities
from prejudge.core.contracts.adapter import Identity, Limits, ModelAdapter
from prejudge.core.contracts.canonical import decode_response, encode, encode_response
from prejudge.core.contracts.errors import ModelError, PermanentError
from prejudge.core.contracts.records import AnyRequest, AnyResponse, Drawing
from prejudge.core.lab.calibration.replay import spoilt


class AnyAdapter(ModelAdapter):
    """A model that takes every kind of request."""

    limits = Limits(concurrency=4, batch_items=500)

    @classmethod
    def abilities(cls, options: object) -> Abilities:
        """Return all operations: what the model behind cannot do is never asked."""
        return Abilities(operations=frozenset(OPERATIONS.values()))


class RecorderOptions(Options, frozen=True, kw_only=True):
    """Settings of `Recorder`."""

    model: str
    """Model of the catalogue that answers."""
    role: str
    """Role that it has."""
    odd: bool = False
    """Whether some of its answers are spoilt."""


class Recorder(AnyAdapter):
    """Asks a model, spoils some of the answers, and keeps what was answered in `Recorder.lines`."""

    options = RecorderOptions
    registry: ClassVar[str | None] = None
    lines: ClassVar[dict[tuple[str, str], dict[str, Any]]] = {}
    identities: ClassVar[dict[str, Identity]] = {}

    def __init__(self, options: RecorderOptions) -> None:
        """Load the model behind."""
        self._options = options
        self._behind = Catalogue.load(Recorder.registry).adapter(options.model)
        settings = self._behind.identity.settings | {"odd": options.odd}
        self.identity = msgspec.structs.replace(self._behind.identity, settings=settings)
        Recorder.identities[options.role] = self.identity

    async def answer(self, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
        """Answer, spoil, and record."""
        self._behind.services = self.services
        answers = [
            spoilt(request, response) if self._options.odd else response
            for request, response in zip(requests, await self._behind.answer(requests), strict=True)
        ]
        for request, response in zip(requests, answers, strict=True):
            self._record(encode(request).decode(), response)
        return answers

    def _record(self, request: str, response: AnyResponse | ModelError) -> None:
        line: dict[str, Any] = {"role": self._options.role, "request": json.loads(request)}
        if isinstance(response, ModelError):
            line["failure"] = str(response)
        else:
            line["response"] = json.loads(encode_response(response))
            if isinstance(response, Drawing) and response.image is not None and self.services.blobs is not None:
                line["image"] = base64.b64encode(self.services.blobs(response.image)).decode()
        Recorder.lines[self._options.role, request] = line

    async def aclose(self) -> None:
        """Close the model behind."""
        await self._behind.aclose()


class RecordedOptions(Options, frozen=True, kw_only=True):
    """Settings of `Recorded`."""

    file: str
    """File of the baseline."""
    role: str
    """Role whose answers it gives."""


class Recorded(AnyAdapter):
    """Gives the answers of a file of the baseline. A request that is not in it fails for good."""

    options = RecordedOptions

    def __init__(self, options: RecordedOptions) -> None:
        """Read the answers."""
        case = read_case(Path(options.file))
        self.identity = msgspec.convert(case["identities"][options.role], Identity)
        self._lines = {json.dumps(line["request"], sort_keys=True): line for line in case["exchanges"][options.role]}

    async def answer(self, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
        """Answer from the file."""
        return [self._answer(json.dumps(json.loads(encode(request)), sort_keys=True)) for request in requests]

    def _answer(self, request: str) -> AnyResponse | ModelError:
        if (line := self._lines.get(request)) is None:
            return PermanentError(f"the baseline has no answer to {request}", code="baseline.unknown-request")
        if "failure" in line:
            return PermanentError(line["failure"], code="baseline.failure")
        if "image" in line and self.services.keep is not None:
            self.services.keep(base64.b64decode(line["image"]), "image/png")
        return decode_response(json.dumps(line["response"]))


def read_case(path: Path) -> dict[str, Any]:
    """Return a case: its head, exchanges by role, counts by stage, and estimates."""
    case: dict[str, Any] = {"exchanges": {}, "rows": [], "estimates": []}
    for text in gzip.decompress(path.read_bytes()).decode().splitlines():
        line = json.loads(text)
        match line.pop("line"):
            case "case":
                case |= line
            case "exchange":
                case["exchanges"].setdefault(line["role"], []).append(line)
            case "row":
                case["rows"].append(line)
            case "estimate":
                case["estimates"].append(line["estimate"])
    return case
