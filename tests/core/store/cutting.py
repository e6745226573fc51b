"""Cutting a copy off at one of its transactions."""

from __future__ import annotations

from prejudge.core.store.chunks import Chunks


class CutError(Exception):
    """Ends a copy."""


def cut_after(monkeypatch, number, of=Chunks, name="commit"):
    """Let a copy end after so many calls of what commits its chunks; return a list of how many are left."""
    commit, left = getattr(of, name), [number]

    def counted(*args):
        left[0] -= 1
        if left[0] < 0:
            raise CutError
        return commit(*args)

    monkeypatch.setattr(of, name, counted)
    return left
