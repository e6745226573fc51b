"""`diffusers`: which files make a pipeline, and what pins them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

from ...installed import need
from .asking import ASK, build, pixels, refusal

need("diffusers", "torch", "PIL")
torch = pytest.importorskip("torch")


def test_identity_is_free_of_place_device_and_batch(tiny, tmp_path):
    moved = shutil.copytree(tiny, tmp_path / tiny.name)
    assert build(moved, batch_items=4, threads=2, device="auto").identity == build(tiny).identity


@pytest.mark.parametrize(
    "name",
    [
        "model_index.json",
        "scheduler/scheduler_config.json",
        "tokenizer/tokenizer_config.json",
        "unet/config.json",
        "unet/diffusion_pytorch_model.safetensors",
        "text_encoder/model.safetensors",
    ],
)
def test_every_file_changes_digest(copied, name):
    before = build(copied).identity.digest
    with (copied / name).open("ab") as file:
        file.write(b" ")
    assert build(copied).identity.digest != before


@pytest.mark.parametrize("name", ["README.md", "unet/diffusion_pytorch_model.fp16.safetensors"])
def test_files_not_loaded_leave_digest(copied, name):
    before = build(copied).identity.digest
    (copied / name).write_bytes(b"other")
    assert build(copied).identity.digest == before


def test_pickled_weights_are_refused(copied):
    weights = copied / "unet" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))
    assert "allow_pickle" in refusal(copied)


def test_pickled_weights_are_read_when_allowed(copied, tiny):
    from safetensors.torch import load_file

    weights = copied / "unet" / "diffusion_pytorch_model.safetensors"
    torch.save(load_file(weights), weights.with_suffix(".bin"))
    weights.unlink()
    assert np.array_equal(pixels(copied, ASK, allow_pickle=True), pixels(tiny, ASK))


def test_missing_weights_are_refused(copied):
    (copied / "vae" / "diffusion_pytorch_model.safetensors").unlink()
    assert "no weights" in refusal(copied)


def test_missing_component_is_refused(copied):
    shutil.rmtree(copied / "scheduler")
    assert "no configuration" in refusal(copied)


def test_folder_without_index_is_refused(tmp_path):
    assert "model_index.json" in refusal(tmp_path)


def test_revision_of_folder_is_refused(tiny):
    assert "revision 'main'" in refusal(tiny, revision="main")


def test_identity_needs_no_torch(tiny):
    code = f"""
import sys
from prejudge.adapters.diffusers.adapter import Diffusers, DiffusersOptions
print(Diffusers(DiffusersOptions(model={str(tiny)!r})).identity.digest, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [build(tiny).identity.digest, "False"]


def test_hub_name_is_pinned_to_cached_commit(tiny, tmp_path, monkeypatch):
    from huggingface_hub import constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    own = build("someone/tiny").identity
    assert (own.model, own.digest) == ("someone/tiny", commit)
    assert np.array_equal(pixels("someone/tiny", ASK), pixels(tiny, ASK))


def test_unknown_hub_name_is_refused(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert "neither cached nor reachable" in refusal("someone/tiny")
