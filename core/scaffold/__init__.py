"""`prejudge new`: a package of your own that works as written, to be changed from there."""

from __future__ import annotations

from .write import KINDS, Names, write_package

__all__ = ["KINDS", "Names", "write_package"]
