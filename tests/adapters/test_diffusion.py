from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from prejudge.adapters import _diffusion_model, _torch
from prejudge.adapters.diffusion import Diffusers, DiffusersOptions
from prejudge.core.errors import MissingExtraError, ModelLoadError, PermanentError, UsageError
from prejudge.core.records import Draw, Drawing

from .diffusion_files import tiny_vae, write_pipeline

pytest.importorskip("diffusers")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

ASK = Draw(prompt="a photo of a person", width=16, height=16, steps=2, seed=3)


@pytest.fixture(scope="session")
def make_pipeline(tmp_path_factory):
    """Return a checkpoint of a tiny Stable Diffusion by its checker's verdict; do not write into it."""
    made = {}

    def make(verdict=None):
        if verdict not in made:
            made[verdict] = write_pipeline(tmp_path_factory.mktemp("diffusion"), verdict)
        return made[verdict]

    return make


@pytest.fixture
def tiny(make_pipeline):
    return make_pipeline()


@pytest.fixture
def copied(tiny, tmp_path):
    return shutil.copytree(tiny, tmp_path / "broken")


def build(folder, **options):
    return Diffusers(DiffusersOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options}))


def draw(folder, *requests, **options):
    """Return the answers, and the images kept by their sha256."""
    kept = {}

    def keep(data, media_type):
        assert media_type == "image/png"
        name = hashlib.sha256(data).hexdigest()
        kept[name] = data
        return name

    async def once():
        adapter = build(folder, **options)
        adapter.keep = keep
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    return asyncio.run(once()), kept


def pixels(folder, request, **options):
    (answer,), kept = draw(folder, request, **options)
    return decode(kept[answer.image])


def decode(data):
    return np.asarray(Image.open(io.BytesIO(data))).astype(int)


def differ(**changes):
    return msgspec.structs.replace(ASK, **changes)


def problem(folder, request, **options):
    (answer,), kept = draw(folder, request, **options)
    assert isinstance(answer, PermanentError)
    assert kept == {}
    return str(answer)


def refusal(folder, **options):
    with pytest.raises(ModelLoadError) as caught:
        draw(folder, ASK, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_drawing_names_kept_png(tiny):
    (answer,), kept = draw(tiny, ASK)
    assert answer == Drawing(image=next(iter(kept)))
    image = Image.open(io.BytesIO(kept[answer.image]))
    assert (image.format, image.size, image.mode, image.info) == ("PNG", (16, 16), "RGB", {})


def test_drawing_equals_plain_diffusers(tiny):
    from diffusers import StableDiffusionPipeline

    plain = StableDiffusionPipeline.from_pretrained(str(tiny))
    plain.set_progress_bar_config(disable=True)
    generator = torch.Generator("cpu").manual_seed(ASK.seed)
    expected = plain(ASK.prompt, width=16, height=16, num_inference_steps=2, generator=generator).images[0]
    assert np.array_equal(pixels(tiny, ASK), np.asarray(expected))


def test_same_request_gives_same_bytes(tiny):
    assert draw(tiny, ASK)[1] == draw(tiny, ASK)[1]


@pytest.mark.parametrize(
    "changes",
    [{"seed": 4}, {"prompt": "a dog"}, {"steps": 3}, {"guidance": 1.5}, {"width": 32}, {"height": 32}],
    ids=lambda changes: next(iter(changes)),
)
def test_every_field_of_request_changes_image(tiny, changes):
    changed = pixels(tiny, differ(**changes))
    assert changed.shape[:2] == (changes.get("height", 16), changes.get("width", 16))
    assert not np.array_equal(changed, pixels(tiny, ASK))


@pytest.mark.parametrize(
    "options",
    [
        {"prompt_suffix": ", oil painting"},
        {"negative_prompt": "blurry"},
        {"scheduler": "EulerAncestralDiscreteScheduler"},
        {"dtype": "bfloat16"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_option_changes_image_and_identity(tiny, options):
    assert not np.array_equal(pixels(tiny, ASK, **options), pixels(tiny, ASK))
    assert build(tiny, **options).identity != build(tiny).identity


def test_suffix_is_part_of_prompt(tiny):
    whole = pixels(tiny, differ(prompt=ASK.prompt + ", red"))
    assert np.array_equal(pixels(tiny, ASK, prompt_suffix=", red"), whole)


def test_unset_steps_and_guidance_take_options(tiny):
    unset = differ(steps=None, guidance=None)
    expected = pixels(tiny, differ(steps=3, guidance=2.0))
    assert np.array_equal(pixels(tiny, unset, steps=3, guidance=2.0), expected)


def test_request_outranks_options(tiny):
    asked = differ(steps=2, guidance=2.0)
    assert np.array_equal(pixels(tiny, asked, steps=5, guidance=9.0), pixels(tiny, asked))


def test_unset_steps_take_pipelines_own(tiny):
    assert np.array_equal(pixels(tiny, differ(steps=None)), pixels(tiny, differ(steps=50)))


@pytest.mark.parametrize("scheduler", [None, "EulerAncestralDiscreteScheduler", "DPMSolverMultistepScheduler"])
def test_image_never_depends_on_calls(tiny, scheduler):
    asked = [differ(seed=seed, prompt=f"a photo of a {word}") for seed, word in enumerate("cat dog man cup".split())]
    together, _ = draw(tiny, *asked, scheduler=scheduler)
    alone = [draw(tiny, one, scheduler=scheduler)[0][0] for one in asked]
    assert together == alone
    assert len(set(together)) == 4


@pytest.mark.parametrize("scheduler", [None, "EulerAncestralDiscreteScheduler", "DPMSolverMultistepScheduler"])
def test_batched_pixels_within_one_level_of_single(tiny, scheduler):
    asked = [differ(seed=seed, prompt=f"a photo of a {word}") for seed, word in enumerate("cat dog man cup".split())]
    together, kept = draw(tiny, *asked, scheduler=scheduler, batch_items=4)
    for request, answer in zip(asked, together, strict=True):
        assert np.abs(decode(kept[answer.image]) - pixels(tiny, request, scheduler=scheduler)).max() <= 1


def test_mixed_requests_answered_in_order(tiny):
    asked = [ASK, differ(width=15), differ(width=32), differ(seed=9), differ(steps=3)]
    answers, kept = draw(tiny, *asked, batch_items=2)
    assert isinstance(answers[1], PermanentError)
    sizes = [Image.open(io.BytesIO(kept[answers[n].image])).size for n in (0, 2, 3, 4)]
    assert sizes == [(16, 16), (32, 16), (16, 16), (16, 16)]
    assert len(kept) == 4


def test_verdict_of_checker_is_filtered_and_nothing_kept(make_pipeline):
    answers, kept = draw(make_pipeline(True), ASK)
    assert answers == [Drawing(image=None, status="filtered")]
    assert kept == {}


def test_checker_without_verdict_changes_nothing(make_pipeline):
    checked = pixels(make_pipeline(False), ASK)
    assert np.array_equal(checked, pixels(make_pipeline(False), ASK, safety_checker=False))


def test_checker_can_be_left_out(make_pipeline):
    (answer,), kept = draw(make_pipeline(True), ASK, safety_checker=False)
    assert answer.status == "ok"
    assert len(kept) == 1


def test_black_image_without_checker_is_an_image(tiny, monkeypatch):
    from diffusers.pipelines.stable_diffusion import StableDiffusionPipeline, StableDiffusionPipelineOutput

    black = StableDiffusionPipelineOutput(images=np.zeros((1, 16, 16, 3)), nsfw_content_detected=None)
    monkeypatch.setattr(StableDiffusionPipeline, "__call__", _saying(lambda: black))
    (answer,), kept = draw(tiny, ASK)
    assert answer.status == "ok"
    assert decode(kept[answer.image]).max() == 0


def test_not_finite_image_is_permanent_error(tiny, monkeypatch):
    from diffusers.pipelines.stable_diffusion import StableDiffusionPipeline, StableDiffusionPipelineOutput

    broken = StableDiffusionPipelineOutput(images=np.full((1, 16, 16, 3), np.nan), nsfw_content_detected=None)
    monkeypatch.setattr(StableDiffusionPipeline, "__call__", _saying(lambda: broken))
    assert "not finite" in problem(tiny, ASK)


def _saying(make):
    def call(
        self, prompt=None, height=None, width=None, num_inference_steps=50, guidance_scale=7.5, generator=None,
        output_type="pil",
    ):  # fmt: skip
        return make()

    return call


def _failing_beyond(most):
    from diffusers.pipelines.stable_diffusion import StableDiffusionPipeline

    real, sizes = StableDiffusionPipeline.__call__, []

    def call(
        self, prompt=None, height=None, width=None, num_inference_steps=50, guidance_scale=7.5, generator=None,
        output_type="pil",
    ):  # fmt: skip
        sizes.append(len(prompt))
        if len(prompt) > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(
            self, prompt=prompt, height=height, width=width, num_inference_steps=num_inference_steps,
            generator=generator, output_type=output_type,
        )  # fmt: skip

    return call, sizes


def test_out_of_memory_halves_batch(tiny, monkeypatch):
    from diffusers.pipelines.stable_diffusion import StableDiffusionPipeline

    call, sizes = _failing_beyond(1)
    monkeypatch.setattr(StableDiffusionPipeline, "__call__", call)
    answers, kept = draw(tiny, *(differ(seed=seed) for seed in range(4)), batch_items=4)
    assert [answer.status for answer in answers] == ["ok"] * 4
    assert len(kept) == 4
    assert sizes == [4, 2, 1, 1, 1, 1]


def test_out_of_memory_for_one_image_is_permanent_error(tiny, monkeypatch):
    from diffusers.pipelines.stable_diffusion import StableDiffusionPipeline

    monkeypatch.setattr(StableDiffusionPipeline, "__call__", _failing_beyond(0)[0])
    assert "does not fit into this device's memory" in problem(tiny, ASK)


@pytest.mark.parametrize("changes", [{"width": 15}, {"height": 0}, {"width": -16}])
def test_unfitting_size_is_permanent_error(tiny, changes):
    assert "multiples of 2" in problem(tiny, differ(**changes))


def test_size_that_only_pipeline_refuses_is_permanent_error(tiny):
    assert "divisible by 8" in problem(tiny, differ(width=18))


def test_seed_out_of_range_is_permanent_error(tiny):
    assert "out of range" in problem(tiny, differ(seed=1 << 64))


@pytest.mark.parametrize("steps", [0, -1])
def test_no_steps_is_permanent_error(tiny, steps):
    assert "at least one" in problem(tiny, differ(steps=steps))


def test_more_steps_than_scheduler_has_is_permanent_error(tiny):
    assert "does not take this request" in problem(tiny, differ(steps=1000))


def test_prompt_longer_than_encoder_is_permanent_error(tiny):
    assert "takes at most 77" in problem(tiny, differ(prompt="person " * 77))


def test_suffix_counts_towards_length(tiny):
    assert "suffix included" in problem(tiny, ASK, prompt_suffix=" person" * 77)


def test_nowhere_to_keep_is_permanent_error(tiny):
    with pytest.raises(PermanentError, match="nowhere to keep an image"):
        asyncio.run(build(tiny).draw(ASK))


def test_unknown_scheduler_names_nearest(tiny):
    with pytest.raises(UsageError, match="Did you mean 'DPMSolverMultistepScheduler'"):
        build(tiny, scheduler="DPMSolverMultiStepScheduler")


def test_scheduler_of_other_family_is_refused(tiny):
    assert "does not fit" in refusal(tiny, scheduler="VQDiffusionScheduler")


def test_scheduler_without_seed_is_refused(tiny):
    with pytest.raises(UsageError, match="the seed of an image does not govern"):
        build(tiny, scheduler="DPMSolverSDEScheduler")


def test_scheduler_for_distilled_weights_fits(tiny):
    assert not np.array_equal(pixels(tiny, ASK, scheduler="LCMScheduler"), pixels(tiny, ASK))


def test_vae_replaces_own(tiny, tmp_path):
    torch.manual_seed(99)
    tiny_vae().save_pretrained(tmp_path / "other-vae")
    other = {"vae": str(tmp_path / "other-vae")}
    assert not np.array_equal(pixels(tiny, ASK, **other), pixels(tiny, ASK))
    assert build(tiny, **other).identity.settings["vae"].startswith("other-vae@sha256:")


def test_same_vae_gives_same_image(tiny):
    assert np.array_equal(pixels(tiny, ASK, vae=str(tiny / "vae")), pixels(tiny, ASK))


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


@pytest.mark.parametrize("options", [{"steps": 9}, {"guidance": 3.0}])
def test_defaults_stand_in_identity(tiny, options):
    assert build(tiny, **options).identity != build(tiny).identity


def test_identity_tells_whether_checker_is_used(make_pipeline):
    assert build(make_pipeline(True)).identity.settings["safety_checker"] is True
    assert build(make_pipeline()).identity.settings["safety_checker"] is False


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


def test_missing_component_is_refused(copied):
    shutil.rmtree(copied / "scheduler")
    assert "holds no configuration" in refusal(copied)


def test_folder_without_index_is_refused(tmp_path):
    assert "model_index.json" in refusal(tmp_path)


def test_revision_of_folder_is_refused(tiny):
    assert "drop it" in refusal(tiny, revision="main")


@pytest.mark.parametrize("kind", ["StableDiffusionImg2ImgPipeline", "NoSuchPipeline"])
def test_other_pipeline_is_refused(copied, kind):
    index = json.loads((copied / "model_index.json").read_text())
    (copied / "model_index.json").write_text(json.dumps({**index, "_class_name": kind}))
    assert "no text-to-image pipeline" in refusal(copied)


def test_code_of_the_model_is_not_run(copied):
    index = json.loads((copied / "model_index.json").read_text())
    (copied / "model_index.json").write_text(json.dumps({**index, "unet": ["evil", "Model"]}))
    (copied / "unet" / "evil.py").write_text("raise SystemExit('ran')")
    assert "own code" in refusal(copied)


@pytest.mark.parametrize("package", ["torch", "diffusers", "PIL"])
def test_missing_extra_names_pip_line(tiny, monkeypatch, package):
    real = importlib.util.find_spec
    for module in (_torch, _diffusion_model):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name == package else real(name))
    with pytest.raises(MissingExtraError, match=r"pip install 'prejudge\[diffusion\]'"):
        build(tiny)


def test_loading_and_drawing_print_nothing(make_pipeline):
    # In a process of its own, for the packages talk most while they are imported.
    code = f"""
import asyncio
from prejudge.adapters.diffusion import Diffusers, DiffusersOptions
from prejudge.core.records import Draw
options = DiffusersOptions(
    model={str(make_pipeline(True))!r}, device="cpu", threads=1, scheduler="EulerDiscreteScheduler"
)
adapter = Diffusers(options)
adapter.keep = lambda data, media_type: "kept"
answer = asyncio.run(adapter.draw(Draw(prompt="a dog", width=16, height=16, steps=2)))
assert answer.status == "filtered", answer
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_identity_needs_no_torch(tiny):
    code = f"""
import sys
from prejudge.adapters.diffusion import Diffusers, DiffusersOptions
print(Diffusers(DiffusersOptions(model={str(tiny)!r})).identity.digest, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [build(tiny).identity.digest, "False"]


def test_cancelled_drawing_stops_between_steps(tiny):
    async def once():
        adapter = build(tiny)
        adapter.keep = lambda data, media_type: "kept"
        await adapter.draw(ASK)
        long = asyncio.create_task(adapter.draw(differ(steps=900, width=64, height=64)))
        await asyncio.sleep(0.2)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        started = asyncio.get_running_loop().time()
        assert await adapter.draw(ASK) == Drawing(image="kept")
        await adapter.aclose()
        return asyncio.get_running_loop().time() - started

    assert asyncio.run(once()) < 5


def test_closed_adapter_refuses(tiny):
    async def once():
        adapter = build(tiny)
        adapter.keep = lambda data, media_type: "kept"
        await adapter.aclose()
        await adapter.draw(ASK)

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(once())


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
