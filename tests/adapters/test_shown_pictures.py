"""One picture for everybody: pictures of four kinds reach a local model and an endpoint as the same bytes."""

from __future__ import annotations

import base64
import hashlib
import io
import json

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


def make_faces(folder):
    """Write four faces: hidden colours, 16-bit grey, inks and a turned photograph; return the plain picture's bytes."""
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
        ]
    ):
        picture.save(folder / f"{number}.{ending}", **options)
        Image.fromarray(noise(24, 24, 3, seed=10 + number)).save(folder / f"{number}-filtered.png")
        rows += [f"f{number},{number}.{ending},original,,,,mine", f"f{number},{number}-filtered.png,filtered,,,,mine"]
    (folder / "metadata.csv").write_text("\n".join(rows))
    return {hashlib.sha256((folder / f"{n}-filtered.png").read_bytes()).hexdigest() for n in range(4)}


def test_four_kinds_of_pictures_are_one_stimulus_for_a_local_model_and_an_endpoint(tmp_path, server, monkeypatch):
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
    assert len(sent) == 8 and sent == set(opened.values())
    names = {name for name in opened if len(name) > 64}
    assert opened.keys() - names == plain and {name[64:] for name in names} == {"-1-00aaff"}
    for name in names:
        with Image.open(io.BytesIO(opened[name])) as picture:
            assert (picture.mode, picture.format) == ("RGB", "PNG")
    (hidden,) = [n for n in names if n.startswith(hashlib.sha256((tmp_path / "0.png").read_bytes()).hexdigest())]
    with Image.open(io.BytesIO(opened[hidden])) as picture:
        assert (np.asarray(picture)[:12] == (0, 0xAA, 0xFF)).all()
    # The store has the originals and what was sent, and a run taken out of it too.
    with Store(tmp_path / "s.db") as store:
        for name in names:
            assert store.blob(name) == opened[name] and hashlib.sha256(store.blob(name[:64])).hexdigest() == name[:64]
        (row,) = [row for row in list_runs(store) if row.name == runs[1].name]
        assert export_run(store, row, tmp_path / "bundle").counts["images"] == 8
    with Store(tmp_path / "other.db") as other, Bundle(tmp_path / "bundle") as bundle:
        import_bundle(other, bundle)
        assert all(other.blob(name) == opened[name] for name in names)
        (row,) = list_runs(other)
        assert prune(other, row, PruneOptions(unused=True)).images == 12
        for name in names:
            with raises_code(DataError, "store.no-image"):
                other.blob(name)
    manifest = json.loads((tmp_path / "runs" / runs[1].name / "manifest.json").read_text())
    assert '"background": "00aaff"' in json.dumps(manifest)
    assert "4 pictures converted" in json.dumps(manifest)
