"""`prejudge new`: write a working package as a starting point."""

from __future__ import annotations

from .write import KINDS, Names, write_package

__all__ = ["KINDS", "Names", "write_package"]
