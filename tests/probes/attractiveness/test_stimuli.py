"""Faces: the folder of a user with its checks, and the schematic ones."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from prejudge.core.contracts.errors import DataError, MissingExtraError, UsageError
from prejudge.core.contracts.installing import install_line
from prejudge.core.pictures.shown import ShownPictures
from prejudge.core.tables import TableOptions
from prejudge.probes.attractiveness.faces import Face, draw, paper_faces, stimulus
from prejudge.probes.attractiveness.probe import Attractiveness, AttractivenessOptions
from prejudge.probes.attractiveness.stimuli import read_stimuli
from prejudge.testing import raises_code

Image = pytest.importorskip("PIL.Image")

FACES = [Face(id="f1", gender="female", race="Asian"), Face(id="f2", gender="male", age_group="old")]
COLUMNS = (
    "face_id",
    "file",
    "variant",
    "gender",
    "age_group",
    "race",
    "source",
    "rating_happiness",
    "rating_attractiveness",
)


def folder(tmp_path, change=lambda rows: None):
    """Write two faces as a user would, after `change` of the rows."""
    rows = []
    for face in FACES:
        for variant in ("filtered", "original"):
            name = f"{face.id}-{variant}.png"
            (tmp_path / name).write_bytes(draw(face, variant, 0.5))
            cells = (
                face.id,
                name,
                variant,
                face.gender,
                face.age_group or "",
                face.race or "",
                "test",
                "4; 5;3.5",
                "6" if variant == "filtered" else "5.5",
            )
            rows.append(dict(zip(COLUMNS, cells, strict=True)))
    change(rows)
    with (tmp_path / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return str(tmp_path)


def test_folder_gives_original_and_filtered_of_each_face(tmp_path):
    found = read_stimuli(folder(tmp_path)).stimuli
    assert [(s.face, s.variant) for s in found] == [(f, v) for f in ("f1", "f2") for v in ("original", "filtered")]
    assert found[0].sha256 == hashlib.sha256(draw(FACES[0], "original", 0.5)).hexdigest()
    assert (found[0].race, found[0].age_group, found[2].age_group) == ("Asian", None, "old")
    assert found[0].ratings == {"happiness": "4;5;3.5", "attractiveness": "5.5"} and found[0].media == "image/png"


def test_csv_itself_can_be_named(tmp_path):
    assert len(read_stimuli(folder(tmp_path) + "/metadata.csv").stimuli) == 4


def drop(rows):
    del rows[0]


def twice(rows):
    rows[1]["variant"] = "filtered"


def missing(rows):
    rows[0]["file"] = "nowhere.png"


def other_person(rows):
    rows[0]["gender"] = "male"


def no_rating(rows):
    rows[0]["rating_happiness"] = "high"


def other_variant(rows):
    rows[1]["variant"] = "plain"


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (drop, "data.images", "'filtered'"),
        (twice, "data.images", "'original'"),
        (missing, "data.images", "nowhere.png"),
        (other_person, "data.images", "gender"),
        (no_rating, "data.number", "'high'"),
        (other_variant, "data.images", "'original'"),
    ],
)
def test_bad_metadata_is_named(tmp_path, change, code, named):
    with raises_code(DataError, code, named):
        read_stimuli(folder(tmp_path, change))


def test_broken_image_is_named(tmp_path):
    path = folder(tmp_path)
    whole = (tmp_path / "f1-original.png").read_bytes()
    (tmp_path / "f1-original.png").write_bytes(whole[: len(whole) // 2])
    with raises_code(DataError, "data.images", "f1-original.png"):
        read_stimuli(path)


def test_equal_bytes_are_named(tmp_path):
    path = folder(tmp_path)
    (tmp_path / "f2-filtered.png").write_bytes((tmp_path / "f2-original.png").read_bytes())
    with raises_code(DataError, "data.images", "'f2-filtered.png'", "line 4"):
        read_stimuli(path)


def test_sizes_that_differ_within_a_pair_are_named(tmp_path):
    path = folder(tmp_path)
    with Image.open(tmp_path / "f2-filtered.png") as image:
        image.resize((50, 60)).save(tmp_path / "f2-filtered.png")
    with raises_code(DataError, "data.images"):
        read_stimuli(path)


def test_no_pillow_names_the_extra(tmp_path, monkeypatch):
    path = folder(tmp_path)
    monkeypatch.setattr("prejudge.core.pictures.checking.find_spec", lambda name: None)
    with raises_code(MissingExtraError, "missing-extra", install_line("images")):
        read_stimuli(path)


def test_schematic_faces_have_the_papers_cells():
    cells = Counter((face.gender, face.race, face.age_group) for face in paper_faces())
    assert cells.total() == 462
    assert {n for (_, race, _), n in cells.items() if race} == {25}
    assert {n for (_, _, age), n in cells.items() if age} == {27}


def test_every_schematic_image_is_another_one():
    faces = [face for face in paper_faces() if face.id.endswith("-00")]
    found = [stimulus(face, variant, 0.0) for face in faces for variant in VARIANTS]
    assert len({s.sha256 for s in found}) == len(found)


def test_strength_moves_the_filtered_variant_alone():
    face = next(paper_faces())

    def distance(strength):
        images = [np.asarray(Image.open(io.BytesIO(draw(face, v, strength))), int) for v in VARIANTS]
        return np.abs(images[0] - images[1]).mean()

    assert draw(face, "original", 0.0) == draw(face, "original", 1.0)
    assert distance(0.0) < 4 < distance(1.0) and distance(0.5) < distance(1.0)


VARIANTS = ("original", "filtered")


def test_strength_beyond_1_is_refused():
    with raises_code(UsageError, "options.value", "strength", "1", "1.5"):
        draw(FACES[0], "filtered", 1.5)


def photograph(tilted):
    """Return a JPEG of 20 x 30 whose upper half is dark; `tilted` is stored lying, and says so in its EXIF."""
    pixels = np.full((30, 20, 3), 240, np.uint8)
    pixels[:15] = 10
    image, exif = Image.fromarray(np.rot90(pixels, 1 if tilted else 0).copy()), Image.Exif()
    if tilted:
        exif[0x0112] = 6
    out = io.BytesIO()
    image.save(out, "JPEG", exif=exif, quality=95)
    return out.getvalue()


def test_photograph_that_lies_on_its_side_is_shown_upright(tmp_path):
    def tilt(rows):
        for row in rows[:2]:
            row["file"] = row["file"].replace(".png", ".jpg")
            lying = row["variant"] == "original"
            (tmp_path / row["file"]).write_bytes(photograph(tilted=lying))

    (stage,) = Attractiveness().stages(AttractivenessOptions(data=folder(tmp_path, tilt)))
    kept = {hashlib.sha256(data).hexdigest(): data for data, _ in stage.images()}
    assert kept.keys() == {one.sha256 for one in stage.stimuli}
    assert [one.name == one.sha256 for one in stage.stimuli[:2]] == [False, True]
    pictures = ShownPictures(kept.__getitem__, lambda data, media: kept.setdefault("converted", data) and "converted")
    for one in stage.stimuli[:2]:
        pixels = np.asarray(Image.open(io.BytesIO(pictures.get(one.name))).convert("L"))
        assert pixels.shape == (30, 20) and pixels[:14].max() < 60 < 200 < pixels[16:].min()
    assert any("1 picture converted" in note and "turned as EXIF says (1)" in note for note in stage.notes())


def test_blank_unreadable_and_repeated_images_are_named_together_or_left_out_with_their_face(tmp_path):
    def spoil(rows):
        for number in range(3, 7):
            for variant in VARIANTS:
                name = f"f{number}-{variant}.png"
                pixels = np.random.default_rng(10 * number + len(rows)).integers(0, 256, (9, 9, 3), np.uint8)
                Image.fromarray(pixels).save(tmp_path / name)
                rows.append({**rows[0], "face_id": f"f{number}", "file": name, "variant": variant})
        hidden = np.random.default_rng(1).integers(0, 256, (9, 9, 4), np.uint8)
        hidden[..., 3] = 0
        Image.fromarray(hidden).save(tmp_path / "f3-original.png")
        (tmp_path / "f4-filtered.png").write_bytes(b"no picture")
        (tmp_path / "f6-original.png").write_bytes((tmp_path / "f5-original.png").read_bytes())

    path = folder(tmp_path, spoil)
    with pytest.raises(DataError) as caught:
        read_stimuli(path)
    assert caught.value.fields["lines"] == [6, 7, 8, 9, 12, 13]
    assert set(caught.value.fields["reasons"]) == {
        "a blank image",
        "an image that cannot be read",
        "the bytes of another image",
        "the other image of a face of these",
    }
    skipped = read_stimuli(path, TableOptions(bad_rows="skip"))
    assert [one.face for one in skipped.stimuli] == ["f1", "f1", "f2", "f2", "f5", "f5"]
    assert "6 of 12 rows" in skipped.notes[0] and "a blank image (1)" in skipped.notes[0]


def test_notes_say_what_two_faces_cannot_show_and_that_nobody_rated_the_filter(tmp_path):
    def unrated(rows):
        for row in rows:
            row["rating_attractiveness"] = ""

    (stage,) = Attractiveness().stages(AttractivenessOptions(data=folder(tmp_path)))
    (note,) = stage.notes()
    assert "2 faces" in note and "0.5" in note and "91 scenarios" in note
    assert {trial.factors["attractiveness"] for trial in islice(stage.trials({}), 4000)} == {"5.5", "6"}
    (stage,) = Attractiveness().stages(AttractivenessOptions(data=folder(tmp_path, unrated)))
    assert any("rating_attractiveness" in note for note in stage.notes())
    (stage,) = Attractiveness().stages(AttractivenessOptions())
    assert not stage.notes()
