"""The dora studies end to end: tiny real models draw, describe and are asked what they feel; answers are hostile."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from prejudge.core.store import Store
from prejudge.probes.dora.wordings import QUESTIONS

from ...adapters.diffusion_files import write_pipeline
from ...adapters.llava_files import make_llava
from .models import run_study

pytest.importorskip("PIL")
pytest.importorskip("torch", reason="needs the extra hf")
pytest.importorskip("diffusers", reason="needs the extra diffusion")

SMALL = {"size": 16, "steps": 2, "samples": 1, "per_dimension": 2, "dimensions": ["religion"], "max_tokens": 12}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a tiny Stable Diffusion without a safety checker, one whose checker flags all, and a tiny LLaVA."""
    import torch

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny")
    make_llava(folder / "tiny-llava", max_position_embeddings=2048)
    return {
        "draws": f"diffusers:{write_pipeline(folder / 'draws')}",
        "flagged": f"diffusers:{write_pipeline(folder / 'flagged', verdict=True)}",
        "sees": f"hf-vlm:{folder / 'tiny-llava'}",
    }


def test_images_are_drawn_described_and_assessed_and_asked_about_without_drawing_again(models, tmp_path, monkeypatch):
    with Store(tmp_path / "s.db") as store:
        roles = {"subject": models["draws"], "describer": models["sees"], "sentiment": "lexicon"}
        drawn = run_study(store, "dora-t2i", roles, SMALL)
        images = drawn["drawings"]["image"]
        assert set(drawn["drawings"]["status"]) == {"ok"} and images.n_unique() == images.len() == 4
        assert drawn["descriptions"]["image"].to_list() == images.to_list()
        answered = drawn["descriptions"].filter(status="ok")
        assert answered["text"].n_unique() > 1 and not drawn["sentiment"].is_empty()
        assert drawn["sentiment"]["label"].drop_nulls().is_in(["positive", "negative", "neutral", "unknown"]).all()

        def refuse(*_: object) -> None:
            raise AssertionError("something was drawn")

        monkeypatch.setattr("prejudge.adapters.diffusers.adapter.Diffusers._load", refuse)
        asked = run_study(store, "dora-i2t", {"subject": models["sees"], "drawer": models["draws"]}, SMALL)
        assert asked["drawings"]["image"].to_list() == images.to_list()
        counts = dict(asked["impressions"].group_by("setting").len().rows())
        assert counts == dict.fromkeys(QUESTIONS, images.len())


def test_flagged_images_are_missing_and_nobody_describes_them(models, tmp_path):
    with Store(tmp_path / "s.db") as store:
        roles = {"subject": models["flagged"], "describer": models["sees"], "sentiment": "lexicon"}
        found = run_study(store, "dora-t2i", roles, SMALL)
    assert set(found["drawings"]["status"]) == {"filtered"} and found["drawings"]["image"].null_count() == 4
    assert found["descriptions"].is_empty() and found["sentiment"].is_empty()


def test_same_image_for_every_prompt_is_described_once(tmp_path: Path, models: dict[str, str]):
    from ...adapters.llava_files import RED

    with Store(tmp_path / "s.db") as store:
        roles = {"subject": "scripted", "describer": models["sees"]}
        # A service that ignores prompts and seeds, and draws a notice instead.
        found = run_study(store, "dora-t2i", roles, SMALL, image=lambda request: notice(RED))
    assert found["drawings"]["status"].to_list() == ["ok", *["unreadable"] * 3]
    assert found["descriptions"].height == 1 and found["descriptions"]["text"].dtype == pl.String


def notice(data: bytes) -> bytes:
    """Return an image of two colours."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        made = image.convert("RGB")
    made.paste((0, 0, 0), (0, 0, 5, 5))
    out = io.BytesIO()
    made.save(out, "PNG")
    return out.getvalue()
