"""`Engine`: starts workers, and carries frames of bytes to and from them. Another engine is another class of this kind.

An engine knows no message: what is asked, what is lost and what is started again is decided in `supervisor.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from .options import WorkerOptions
from .places import Place


class Link(ABC):
    """One worker that runs."""

    name: str
    """As it is called in messages, such as `worker 1 (process 4711)`."""

    @abstractmethod
    def send(self, frame: bytes) -> None:
        """Send a frame; to a worker that has ended, nothing."""

    @abstractmethod
    async def receive(self) -> bytes | None:
        """Return the next frame; None: the worker has ended."""

    @abstractmethod
    def kill(self) -> None:
        """End the worker now, whatever it does."""

    @abstractmethod
    async def gone(self) -> str:
        """Wait until the worker has ended, and return how, in words."""


class Engine(ABC):
    """Starts workers."""

    @abstractmethod
    async def open(self, options: WorkerOptions) -> list[Place]:
        """Return a place for each worker, before anything is asked.

        Raises:
            UsageError: there are none, fewer than asked for, or the machines do not answer.
        """

    @abstractmethod
    async def start(self, place: Place) -> Link:
        """Start a worker.

        Raises:
            UsageError: it cannot be started.
        """

    async def aclose(self) -> None:
        """Give up what `open` took; the workers have ended."""
        return
