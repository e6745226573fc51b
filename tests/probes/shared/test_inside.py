"""A table that came with a folder names no other files of its reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from prejudge.probes.shared.images import inside


@pytest.mark.parametrize("name", ["/etc/hostname", "../a.png", "a/../../b.png", "a\\..\\..\\b.png"])
def test_file_elsewhere_is_refused(name):
    with pytest.raises(ValueError, match="not below"):
        inside(Path("/data"), name)


@pytest.mark.parametrize("name", ["a.png", " faces/a.png ", "..a.png"])
def test_file_below_the_table_is_found(name):
    assert inside(Path("/data"), name) == Path("/data") / name.strip()
