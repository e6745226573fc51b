"""`prejudge new`: write a working package as a starting point."""

from __future__ import annotations

from .write import KINDS, STUDIES, STUDY, Names, write_package, write_study

__all__ = ["KINDS", "STUDIES", "STUDY", "Names", "write_package", "write_study"]
