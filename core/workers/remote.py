"""`Remote`: a model in the workers, as an adapter that the scheduler asks like any other; and how a run gets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any

import msgspec

from ..catalogue.study import Catalogue
from ..contracts.adapter import ModelAdapter, Services, affinity, generation_number
from ..contracts.canonical import encode
from ..contracts.errors import ModelError, UsageError
from ..contracts.records import AnyRequest, AnyResponse, Request
from .cluster import Cluster
from .engine import Engine
from .local import Local
from .options import LOCAL, RAY, WorkerOptions
from .supervisor import Supervisor
from .wire import Model, describe

ENGINES: dict[str, type[Engine]] = {LOCAL: Local, RAY: Cluster}
AHEAD = 1
"""Calls that wait for each worker: it need not wait for the driver, and takes one that shares with what it holds."""


class Remote(ModelAdapter):
    """A model in the workers. `face` is an instance in this process, which loads no weights: it answers nothing."""

    def __init__(self, name: str, face: ModelAdapter, supervisor: Supervisor) -> None:
        described = supervisor.described[name]
        self._name, self._face, self._supervisor = name, face, supervisor
        self.options = face.options  # type: ignore[misc]  # of the class that it stands for
        self.identity = described.identity
        self._abilities = described.abilities
        self._services = Services()
        self._take_limits()

    @property
    def services(self) -> Services:
        """The services of a run; the workers get them, too."""
        return self._services

    @services.setter
    def services(self, services: Services) -> None:
        self._services = services
        self._face.services = services
        self.identity = self._face.identity
        self._supervisor.bind(self._name, services)

    def note_on(self, image: bytes) -> str:
        """Return what the model's class says of an image."""
        return self._face.note_on(image)

    def describe(self) -> Mapping[str, str]:
        """Return what the model's files say of it."""
        return self._face.describe()

    def check(self, request: Request) -> None:
        """Write a request as the model's class does."""
        self._face.check(request)

    async def answer(self, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
        """Have workers answer; an instance there refuses what the model cannot do."""
        if not requests:
            return []
        again = {place: generation_number(self._services, request) for place, request in enumerate(requests)}
        answers = await self._supervisor.ask(
            self._name,
            [encode(one) for one in requests],
            {place: times for place, times in again.items() if times},
            [affinity(request) for request in requests],
        )
        self._take_limits()
        return answers

    async def aclose(self) -> None:
        """End the workers: no model of a run is asked after one of them was closed."""
        await self._supervisor.aclose()
        await self._face.aclose()

    def _take_limits(self) -> None:
        one, workers = self._supervisor.limits[self._name], len(self._supervisor.members)
        self.limits = msgspec.structs.replace(one, concurrency=(one.concurrency + AHEAD) * workers)


async def open_adapters(
    catalogue: Catalogue, models: Iterable[str], options: WorkerOptions | None
) -> dict[str, ModelAdapter]:
    """Return an adapter for each model: in this process, or in workers if there are options for them.

    Models behind an endpoint stay in this process.

    Raises:
        UsageError: a model cannot be made, the workers cannot be started, or no model would gain from them.
    """
    adapters = dict[str, ModelAdapter]()
    try:
        for model in sorted(set(models)):
            adapters[model] = catalogue.adapter(model)
        if options is None:
            return adapters
        return adapters | await _open(catalogue, adapters, options)
    except BaseException:
        for adapter in adapters.values():
            await adapter.aclose()
        raise


async def _open(
    catalogue: Catalogue, adapters: Mapping[str, ModelAdapter], options: WorkerOptions
) -> dict[str, ModelAdapter]:
    local = {name: adapter for name, adapter in adapters.items() if adapter.endpoint is None}
    if not local:
        raise UsageError(
            f"{', '.join(map(repr, adapters))} is asked over a network: one process is enough, and workers would make "
            "nothing faster. Leave --workers and --devices out; `concurrency` in the model's entry sends more at once.",
            code="workers.endpoint",
        )
    records = {name: Model(_target(adapter), _options(catalogue, name)) for name, adapter in local.items()}
    described = {name: describe(adapter) for name, adapter in local.items()}
    engine = ENGINES[options.engine]()
    supervisor = Supervisor(engine, await engine.open(options), records, described)
    return {name: Remote(name, face, supervisor) for name, face in local.items()}


def _options(catalogue: Catalogue, model: str) -> bytes:
    return msgspec.msgpack.encode(catalogue.options_of(model))


def _target(adapter: ModelAdapter) -> str:
    """Return where a worker finds an adapter's class.

    Raises:
        UsageError: another process cannot import it.
    """
    kind: type[Any] = type(adapter)
    found = None
    if kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__:
        found = attrgetter(kind.__qualname__)(import_module(kind.__module__))
    if found is not kind:
        raise UsageError(
            f"the adapter {kind.__name__} is defined in {kind.__module__}, which a worker cannot import. Put it into a "
            "module of a package, or leave --workers out.",
            code="workers.adapter",
        )
    return f"{kind.__module__}:{kind.__qualname__}"
