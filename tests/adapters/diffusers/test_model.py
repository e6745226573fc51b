"""`diffusers`: what is loaded, and what is refused while loading."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from prejudge.adapters.diffusers import model as _diffusion_model
from prejudge.adapters.shared import torch as _torch
from prejudge.core.contracts.errors import MissingExtraError, ModelLoadError, UsageError
from prejudge.core.contracts.installing import install_line
from prejudge.testing import raises_code

from ...installed import need
from ..diffusion_files import tiny_vae
from .asking import ASK, build, pixels, refusal

need("diffusers", "torch", "PIL")
torch = pytest.importorskip("torch")


def test_unknown_scheduler_names_nearest(tiny):
    with raises_code(UsageError, "unknown-scheduler", "'DPMSolverMultistepScheduler'"):
        build(tiny, scheduler="DPMSolverMultiStepScheduler")


def test_scheduler_of_other_family_is_refused(tiny):
    assert "does not fit" in refusal(tiny, scheduler="VQDiffusionScheduler")


def test_scheduler_without_seed_is_refused(tiny):
    with raises_code(UsageError, "model.scheduler"):
        build(tiny, scheduler="DPMSolverSDEScheduler")


def test_scheduler_for_distilled_weights_fits(tiny):
    assert not np.array_equal(pixels(tiny, ASK, scheduler="LCMScheduler"), pixels(tiny, ASK))


def test_vae_replaces_own(tiny, tmp_path):
    torch.manual_seed(99)
    tiny_vae().save_pretrained(tmp_path / "other-vae")
    other = {"vae": str(tmp_path / "other-vae")}
    assert not np.array_equal(pixels(tiny, ASK, **other), pixels(tiny, ASK))
    assert build(tiny, **other).identity.settings["vae"].startswith("sha256:")


def test_same_vae_gives_same_image(tiny):
    assert np.array_equal(pixels(tiny, ASK, vae=str(tiny / "vae")), pixels(tiny, ASK))


@pytest.mark.parametrize(
    "name", ["unet/diffusion_pytorch_model.safetensors", "text_encoder/model.safetensors"], ids=["unet", "text"]
)
def test_lacking_tensor_is_refused(copied, name):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / name)
    lost = sorted(tensors)[-1]
    del tensors[lost]
    save_file(tensors, copied / name, metadata={"format": "pt"})
    assert lost.rsplit(".", 2)[-2] in refusal(copied)


def test_broken_weights_are_refused(copied):
    (copied / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"no weights")
    assert "cannot load 'unet'" in refusal(copied)


@pytest.mark.parametrize("kind", ["StableDiffusionImg2ImgPipeline", "NoSuchPipeline"])
def test_other_pipeline_is_refused(copied, kind):
    index = json.loads((copied / "model_index.json").read_text())
    (copied / "model_index.json").write_text(json.dumps({**index, "_class_name": kind}))
    assert "not a text-to-image pipeline" in refusal(copied)


@pytest.mark.parametrize("part", ["unet", "scheduler", "tokenizer"])
def test_code_of_the_model_is_not_run(copied, part):
    index = json.loads((copied / "model_index.json").read_text())
    (copied / "model_index.json").write_text(json.dumps({**index, part: ["evil", "Model"]}))
    (copied / part / "evil.py").write_text("raise SystemExit('ran')")
    with raises_code(ModelLoadError, "model.own-code"):
        build(copied)


@pytest.mark.parametrize(
    "place",
    [
        ["antigravity", "fly"],
        ["diffusers", "importlib"],
        ["diffusers.utils.import_utils", "importlib"],
        ["stable_diffusion", "torch"],
        ["stable_diffusion.pipeline_stable_diffusion", "StableDiffusionPipeline"],
        ["../evil", "Evil"],
        [["diffusers"], "UNet2DConditionModel"],
    ],
)
def test_class_that_is_not_listed_is_not_imported(copied, place, monkeypatch):
    index = json.loads((copied / "model_index.json").read_text())
    (copied / "model_index.json").write_text(json.dumps({**index, "scheduler": place}))
    monkeypatch.setattr(_diffusion_model.importlib, "import_module", lambda name: pytest.fail(f"imports {name}"))
    with raises_code(ModelLoadError, "model.own-code"):
        build(copied)


@pytest.mark.parametrize("place", [["transformers", "Trainer"], ["diffusers", "ConfigMixin"], ["diffusers", "Version"]])
def test_class_of_another_kind_is_not_loaded(copied, place):
    index = json.loads((copied / "model_index.json").read_text())
    (copied / "model_index.json").write_text(json.dumps({**index, "unet": place}))
    assert "neither diffusers nor" in refusal(copied)


def test_component_outside_the_model_is_refused(copied):
    index = json.loads((copied / "model_index.json").read_text())
    (copied / "model_index.json").write_text(json.dumps({**index, "../vae": ["diffusers", "AutoencoderKL"]}))
    assert "outside the model" in refusal(copied)


@pytest.mark.parametrize("package", ["torch", "diffusers", "PIL"])
def test_missing_extra_names_pip_line(tiny, monkeypatch, package):
    real = importlib.util.find_spec
    for module in (_torch, _diffusion_model):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name == package else real(name))
    with raises_code(MissingExtraError, "missing-extra", install_line("diffusion")):
        build(tiny)


def test_loading_and_drawing_print_nothing(make_pipeline):
    # In a process of its own, for the packages talk most while they are imported.
    code = f"""
import asyncio
from prejudge.adapters.diffusers.adapter import Diffusers, DiffusersOptions
from prejudge.core.contracts.adapter import Services, answer_one
from prejudge.core.contracts.records import Draw
options = DiffusersOptions(
    model={str(make_pipeline(True))!r}, device="cpu", threads=1, scheduler="EulerDiscreteScheduler"
)
adapter = Diffusers(options)
adapter.services = Services(keep=lambda data, media_type: "kept")
answer = asyncio.run(answer_one(adapter, Draw(prompt="a dog", width=16, height=16, steps=2)))
assert answer.status == "filtered", answer
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
