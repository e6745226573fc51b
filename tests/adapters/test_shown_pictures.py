"""One picture for everybody: pictures of five kinds reach a local model and an endpoint as the same bytes."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sqlite3

import numpy as np
import pytest

import prejudge
from prejudge.adapters.hf.vlm import groups
from prejudge.core.contracts.errors import DataError
from prejudge.core.store import Store
from prejudge.core.store.bundle import export_run
from prejudge.core.store.prune import PruneOptions, prune
from prejudge.core.store.reading import list_runs
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from .llava_files import make_llava

Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.usefixtures("no_figures")
SCENARIO = "first,second,category,kind,positive,stereotype\nKind,Rude,traits,directed,first,\n"


def noise(*shape, seed):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


ANOTHER = Image.fromarray(noise(24, 24, 3, seed=6))
"""The second frame of an animation, which nobody is shown."""


def make_faces(folder):
    """Write faces: hidden colours, 16-bit grey, inks, a turned photograph, an animation; return the plain pictures."""
    clear = noise(24, 24, 4, seed=1)
    clear[:12, :, 3] = 0
    turned = Image.Exif()
    turned[0x0112] = 6
    wide = np.random.default_rng(2).integers(0, 65_536, (24, 24), np.uint16)
    rows = ["face_id,file,variant,gender,age_group,race,source"]
    for number, (ending, picture, options) in enumerate(
        [
            ("png", Image.fromarray(clear), {}),
            ("png", Image.fromarray(wide), {}),
            ("jpg", Image.fromarray(noise(24, 24, 4, seed=3), "CMYK"), {"quality": 90}),
            ("jpg", Image.fromarray(noise(24, 24, 3, seed=4)), {"quality": 90, "exif": turned}),
            ("gif", Image.fromarray(noise(24, 24, 3, seed=5)), {"save_all": True, "append_images": [ANOTHER]}),
        ]
    ):
        picture.save(folder / f"{number}.{ending}", **options)
        Image.fromarray(noise(24, 24, 3, seed=10 + number)).save(folder / f"{number}-filtered.png")
        rows += [f"f{number},{number}.{ending},original,,,,mine", f"f{number},{number}-filtered.png,filtered,,,,mine"]
    (folder / "metadata.csv").write_text("\n".join(rows))
    return {hashlib.sha256((folder / f"{n}-filtered.png").read_bytes()).hexdigest() for n in range(5)}


def test_five_kinds_of_pictures_are_one_stimulus_for_a_local_model_and_an_endpoint(tmp_path, server, monkeypatch):
    plain = make_faces(tmp_path)
    make_llava(tmp_path / "tiny-llava")
    (tmp_path / "own.csv").write_text(SCENARIO)
    registry = tmp_path / "registry.toml"
    registry.write_text(
        '[models.local]\nadapter = "hf-vlm"\nsettings = { model = "./tiny-llava" }\n'
        '[models.remote]\nadapter = "openai"\n'
        f'settings = {{ model = "tiny", base_url = "{server.url}", api_key_env = "" }}\n'
    )
    settings = prejudge.Settings(
        store=str(tmp_path / "s.db"),
        runs=str(tmp_path / "runs"),
        registry=str(registry),
        keep_going=True,
        accept_unfit=True,
    )
    opened = {}
    read = groups.open_image

    def spy(name, blobs):
        opened[name] = blobs(name)
        return read(name, blobs)

    monkeypatch.setattr(groups, "open_image", spy)
    options = {"data": str(tmp_path), "scenarios": str(tmp_path / "own.csv"), "built_in": False, "background": "00aaff"}
    quick = {"attractiveness.resamples": 99, "attractiveness.effect_resamples": 99}
    runs = [
        prejudge.run("attractiveness", model, settings, seeds=[0], **options, **quick) for model in ("local", "remote")
    ]
    urls = {
        part["image_url"]["url"]
        for call in server.seen
        for message in call.body["messages"]
        for part in message["content"]
        if isinstance(part, dict) and part["type"] == "image_url"
    }
    sent = {base64.b64decode(url.partition(",")[2]) for url in urls}
    assert len(sent) == 10 and sent == set(opened.values())
    names = {name for name in opened if len(name) > 64}
    assert opened.keys() - names == plain and {name[64:] for name in names} == {"-1-00aaff"}
    for name in names:
        with Image.open(io.BytesIO(opened[name])) as picture:
            assert (picture.mode, picture.format) == ("RGB", "PNG")
    (hidden,) = [n for n in names if n.startswith(hashlib.sha256((tmp_path / "0.png").read_bytes()).hexdigest())]
    with Image.open(io.BytesIO(opened[hidden])) as picture:
        assert (np.asarray(picture)[:12] == (0, 0xAA, 0xFF)).all()
    (moving,) = [n for n in names if n.startswith(hashlib.sha256((tmp_path / "4.gif").read_bytes()).hexdigest())]
    with Image.open(tmp_path / "4.gif") as animation, Image.open(io.BytesIO(opened[moving])) as shown:
        assert animation.n_frames == 2
        animation.seek(0)
        assert (np.asarray(animation.convert("RGB")) == np.asarray(shown)).all()
    # The store has the originals and what was sent, and a run taken out of it too.
    with Store(tmp_path / "s.db") as store:
        for name in names:
            assert store.blob(name) == opened[name] and hashlib.sha256(store.blob(name[:64])).hexdigest() == name[:64]
        (row,) = [row for row in list_runs(store) if row.name == runs[1].name]
        assert export_run(store, row, tmp_path / "bundle").counts["images"] == 15
    with Store(tmp_path / "other.db") as other, Bundle(tmp_path / "bundle") as bundle:
        import_bundle(other, bundle)
        assert all(other.blob(name) == opened[name] for name in names)
        (row,) = list_runs(other)
        assert prune(other, row, PruneOptions(unused=True)).images == 15
        for name in names:
            with raises_code(DataError, "store.no-image"):
                other.blob(name)
    manifest = json.loads((tmp_path / "runs" / runs[1].name / "manifest.json").read_text())
    assert '"background": "00aaff"' in json.dumps(manifest)
    assert "5 pictures converted" in json.dumps(manifest) and "several frames: the first (1)" in json.dumps(manifest)


HINDI = """language = "hi"
population = "faces that a test has drawn"
[words]
change = "बदलाव"
[wordings]
built_in = false
question = "कौन? (a) {a} (b) {b}. ({x}) या ({y})?"
"""


def test_faces_with_several_changes_and_questions_in_hindi_run_on_a_local_model(tmp_path):
    """StylisticBias in small: each change is compared with the face without one, by a real LLaVA, end to end."""
    folder = tmp_path / "faces"
    folder.mkdir()
    changes = ("original", "glasses", "beard", "smile")
    rows = ["face_id,file,variant,gender,age_group,race,source"]
    for face in range(8):
        for number, change in enumerate(changes):
            Image.fromarray(noise(24, 24, 3, seed=100 * face + number)).save(folder / f"{face}-{change}.png")
            rows.append(f"f{face},{face}-{change}.png,{change},,,,mine")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n", "utf-8")
    options = ("दयालु,कठोर", "सच्चा,झूठा", "शांत,उग्र")
    listed = [f"{both},गुण,मेरा,first" for both in options]
    (folder / "scenarios.csv").write_text("\n".join(["first,second,category,kind,positive", *listed]) + "\n", "utf-8")
    (folder / "about.toml").write_text(HINDI, "utf-8")
    make_llava(tmp_path / "tiny-llava")
    registry = tmp_path / "registry.toml"
    registry.write_text('[models.local]\nadapter = "hf-vlm"\nsettings = { model = "./tiny-llava" }\n')
    settings = prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), registry=str(registry))
    quick = {"attractiveness.resamples": 99, "attractiveness.effect_resamples": 99}
    run = prejudge.run("attractiveness", "local", settings, data=str(folder), asking="likelihood", **quick)
    halos = run.estimates.filter(metric="halo")
    assert set(halos["change"]) == set(changes[1:]) and halos["value"].is_not_null().all()
    frame = run.observations
    by_hand = {change: frame.filter(variant=change).height for change in changes}
    assert len(set(by_hand.values())) == 1 and frame["status"].unique().to_list() == ["ok"]
    (database,) = sqlite3.connect(tmp_path / "s.db").execute("SELECT group_concat(request) FROM exchange").fetchone()
    assert "कौन? (a)" in database and "Make your best estimate" not in database
    report = (tmp_path / "runs" / run.name / "report.html").read_text("utf-8")
    assert "hi" in report and "faces that a test has drawn" in report
