"""Media that nobody can write to, to see what can be read there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


class Media:
    """Folders that are made read-only, also for root."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._mounted: list[Path] = []
        self._closed: list[tuple[Path, int]] = []

    def of(self, folder: Path) -> Path:
        """Return a path at which nobody can write to a folder."""
        if os.geteuid():
            for path in (*folder.iterdir(), folder):
                self._closed.append((path, path.stat().st_mode))
                path.chmod(path.stat().st_mode & 0o555)
            return folder
        media = self._place / f"media-{len(self._mounted)}"
        media.mkdir()
        bind = [["mount", "--bind", str(folder), str(media)], ["mount", "-o", "remount,ro,bind", str(media)]]
        for command in bind:
            try:
                subprocess.run(command, check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("root can write to any folder, and this system mounts none read-only")
            self._mounted.append(media)
        return media

    def close(self) -> None:
        """Let the folders be written again."""
        for media in dict.fromkeys(self._mounted):
            subprocess.run(["umount", str(media)], check=False, capture_output=True)
        for path, mode in reversed(self._closed):
            path.chmod(mode)
