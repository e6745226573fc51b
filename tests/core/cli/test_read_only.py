"""Every command that only reads works on a store on read-only media, and says where to write where it cannot."""

from __future__ import annotations

import os
import shutil
import sqlite3

import pytest

from ...command import call
from ...media import Media

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders are made read-only with the means of POSIX")
POLICY = """
[[rules]]
measure = "halo"
max = 1000
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Return a folder with the store of two runs, and their names."""
    folder = tmp_path_factory.mktemp("archive")
    for model in ("simulated-fair", "simulated-biased"):
        done = call(folder, "run", "bistereo-nli", "--model", model, "--limit", "24")
        assert done.returncode == 0, done.stderr
    return folder, sorted(path.name for path in (folder / "runs").iterdir())


@pytest.fixture
def media(tmp_path):
    made = Media(tmp_path)
    yield made
    made.close()


def test_commands_that_read_work_on_read_only_media(archive, media, tmp_path):
    template, (first, second) = archive
    (disc := tmp_path / "disc").mkdir()
    shutil.copyfile(template / "prejudge.db", disc / "prejudge.db")
    (work := tmp_path / "work").mkdir()
    (work / "policy.toml").write_text(POLICY)
    place = media.of(disc)
    store = ("--store", str(place / "prejudge.db"))
    with sqlite3.connect(template / "prejudge.db") as connection:
        keys = [key.hex() for (key,) in connection.execute("SELECT key FROM exchange LIMIT 2")]
    connection.close()
    reading = {
        "list runs": 0,
        f"score {first}": 0,
        f"export {first} --out e.csv": 0,
        f"export {first} --what observations --out o.csv": 0,
        f"compare {first} {second}": 0,
        f"gate {first} --policy policy.toml": None,
        f"export {first} --what card": 0,
        f"lab variance {first}": 0,
        "cache verify": 0,
        "cache stats": 0,
        "cache batches": 0,
        f"cache export {first} --out b.db.gz": 0,
        f"cache explain {' '.join(keys)}": 0,
        "doctor": None,
    }
    for words, code in reading.items():
        done = call(work, *words.split(), *store)
        assert done.returncode == code if code is not None else "read-only" not in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr
    for words in (f"resume {first}", f"cache prune --run {first} --yes", "cache import b.db.gz"):
        done = call(work, *words.split(), *store)
        assert done.returncode == 2 and "read-only" in done.stderr, words
    done = call(place, "score", first)
    assert done.returncode == 2 and "--runs" in done.stderr
    assert sorted(path.name for path in disc.iterdir()) == ["prejudge.db"]
