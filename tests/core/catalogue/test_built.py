"""Models that are made at their first use: once, whole or not at all, and never from files that changed since."""

from __future__ import annotations

import os
import sys
import time
import types
from pathlib import Path

import pytest

from prejudge.core.catalogue.built import ABANDONED, CACHE, RECORD, Record, cache_folder, ensure_built, settings_placed
from prejudge.core.catalogue.trust import read_candidate, wants_of
from prejudge.core.contracts.errors import DataError, ModelLoadError, UnknownNameError, UsageError
from prejudge.core.contracts.recipe import Recipe, digest_of
from prejudge.testing import raises_code

PACKAGE = "prejudge_recipes_of_a_test"
SETTINGS = {"model": f"built:{PACKAGE}/small", "threads": 1, "names": ["a"]}


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """A package with recipes, a cache folder, and what was made."""
    made: list[str] = []

    def make(name: str, folder: Path) -> None:
        made.append(name)
        (folder / "inner").mkdir()
        (folder / "inner" / "weights").write_text(f"{name} {len(made)}")

    def fail(name: str, folder: Path) -> None:
        (folder / "half").write_text("half a model")
        raise RuntimeError("no room")

    module = types.ModuleType(PACKAGE)
    module.__dict__.update(make=make, fail=fail, made=made)
    module.RECIPES = {  # type: ignore[attr-defined]
        "small": Recipe(f"{PACKAGE}:make", 2, "0123456789abcdef"),
        "broken": Recipe(f"{PACKAGE}:fail", 2, "0123456789abcdef"),
    }
    monkeypatch.setitem(sys.modules, PACKAGE, module)
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    return module


def test_a_model_is_made_once_with_a_line_that_says_so(workshop, caplog):
    ensure_built(SETTINGS)
    ensure_built(SETTINGS)
    assert workshop.made == ["small"]
    (line,) = caplog.messages
    assert "small" in line and "2 s" in line
    placed = settings_placed(SETTINGS)
    # The last part of the place belongs to the identity of a model: its name, without digest.
    assert Path(placed["model"]).name == "small" and (Path(placed["model"]) / "inner" / "weights").is_file()
    assert placed["threads"] == 1 and placed["names"] == ["a"]


def test_a_file_of_a_model_is_named_behind_it(workshop):
    ensure_built({"model": f"built:{PACKAGE}/small/inner/weights"})
    assert Path(settings_placed({"model": f"built:{PACKAGE}/small/inner/weights"})["model"]).read_text() == "small 1"


def test_places_are_known_without_making_anything(workshop):
    assert not Path(settings_placed(SETTINGS)["model"]).exists() and workshop.made == []


def test_another_recipe_is_another_model(workshop):
    ensure_built(SETTINGS)
    first = settings_placed(SETTINGS)["model"]
    workshop.RECIPES["small"] = workshop.RECIPES["small"]._replace(digest="fedcba9876543210")
    ensure_built(SETTINGS)
    assert settings_placed(SETTINGS)["model"] != first and workshop.made == ["small", "small"]


def test_half_a_model_leaves_nothing_behind(workshop, tmp_path):
    with pytest.raises(RuntimeError, match="no room"):
        ensure_built({"model": f"built:{PACKAGE}/broken"})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_a_killed_process_left_is_removed_and_what_another_one_makes_now_is_not(workshop, tmp_path):
    left, busy = (tmp_path / "cache" / "built" / f".other-0123.{name}" for name in ("left", "busy"))
    for folder in (left, busy):
        (folder / "other").mkdir(parents=True)
    long_ago = time.time() - ABANDONED - 1
    os.utime(left, (long_ago, long_ago))
    ensure_built(SETTINGS)
    assert not left.exists() and busy.is_dir()


def test_the_faster_of_two_processes_wins(workshop, tmp_path):
    def overtaken(name, folder):
        rival = settings_placed(SETTINGS)["model"]
        workshop.make = workshop_make
        ensure_built(SETTINGS)
        assert Path(rival).is_dir()
        (folder / "late").write_text("late")

    workshop_make, workshop.make = workshop.make, overtaken
    ensure_built(SETTINGS)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"weights", RECORD}


@pytest.mark.parametrize("change", ["edit", "add", "remove", "record"])
def test_files_that_changed_since_are_refused(workshop, change):
    ensure_built(SETTINGS)
    folder = Path(settings_placed(SETTINGS)["model"])
    weights = folder / "inner" / "weights"
    if change == "edit":
        weights.write_text("other weights")
    elif change == "add":
        (folder / "tokenizer.json").write_text("{}")
    elif change == "remove":
        weights.unlink()
    else:
        (folder.parent / RECORD).write_text("no record")
    with raises_code(ModelLoadError, "model.built-changed", str(folder.parent)):
        ensure_built(SETTINGS)


def test_the_record_says_how_it_was_made(workshop):
    import msgspec

    ensure_built(SETTINGS)
    folder = Path(settings_placed(SETTINGS)["model"])
    record = msgspec.json.decode((folder.parent / RECORD).read_bytes(), type=Record)
    assert (record.name, record.recipe, list(record.files)) == ("small", "0123456789abcdef", ["inner/weights"])
    assert "numpy" in record.packages and record.machine


def test_unknown_recipes_and_packages_are_named(workshop):
    with raises_code(UnknownNameError, "unknown-recipe", "'small'"):
        settings_placed({"model": f"built:{PACKAGE}/smal"})
    with raises_code(DataError, "registry.entry", "no_such_package"):
        settings_placed({"model": "built:no_such_package/small"})


def test_a_cache_that_cannot_be_written_is_a_plain_error(workshop, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE, str(tmp_path / "file"))
    with raises_code(UsageError, "file.unwritable", CACHE):
        ensure_built(SETTINGS)


def test_the_cache_is_the_users_and_never_the_working_directory(tmp_path):
    assert cache_folder({CACHE: str(tmp_path), "XDG_CACHE_HOME": "/other"}) == tmp_path
    assert cache_folder({CACHE: "here", "XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "prejudge"
    assert cache_folder({}) == Path.home() / ".cache" / "prejudge"


@pytest.mark.parametrize(("value", "trusted"), [("prejudge.adapters.reference/masked_fair", True), ("evil/one", False)])
def test_a_registry_that_merely_lies_there_runs_no_other_packages_recipes(tmp_path, value, trusted):
    path = tmp_path / "registry.toml"
    path.write_text(f'[models.mine]\nadapter = "hf-masked"\nsettings = {{ model = "built:{value}" }}\n')
    assert (wants_of(read_candidate(path)) == []) is trusted


def test_a_digest_is_of_names_and_contents(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("1")
    first = digest_of([one, two])
    assert first == digest_of([two, one]) != digest_of([one])
    two.write_text("2")
    assert digest_of([one, two]) != first
