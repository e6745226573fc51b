"""The blocking twin of a coroutine function: `run` of `arun`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def blocking(asynchronous: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return the function that does the same and blocks until it is done, also in a running event loop.

    Its name is that of the coroutine function without the leading `a`. It has the same signature and documentation,
    whose examples call it instead of awaiting the other.
    """
    awaited = asynchronous.__name__
    name = awaited.removeprefix("a")

    @wraps(asynchronous)
    def verb(*args: P.args, **kwargs: P.kwargs) -> T:
        return _result(asynchronous(*args, **kwargs))

    verb.__name__ = verb.__qualname__ = name
    verb.__doc__ = (asynchronous.__doc__ or "").replace(f"await prejudge.{awaited}(", f"prejudge.{name}(")
    return verb


def _result(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    # A notebook's event loop is running: the work gets a loop of its own in a thread.
    with ThreadPoolExecutor(1, thread_name_prefix="prejudge-run") as pool:
        return pool.submit(asyncio.run, work).result()
