"""scipy.stats, imported where it is first used: that takes a second, and most estimates need none of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Stats:
    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("scipy.stats"), name)


stats: Any = _Stats()
