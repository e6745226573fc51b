"""`diffusers`: what is drawn, alone and in batches, and which requests are refused."""

from __future__ import annotations

import io

import numpy as np
import pytest

from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Drawing

from ...installed import need
from .asking import ASK, decode, differ, draw, pixels

need("diffusers", "torch", "PIL")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")


def problem(folder, request, **options):
    (answer,), kept = draw(folder, request, **options)
    assert isinstance(answer, PermanentError)
    assert kept == {}
    return str(answer)


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
    assert "at least 1" in problem(tiny, differ(steps=steps))


def test_more_steps_than_scheduler_has_is_permanent_error(tiny):
    assert "does not take this request" in problem(tiny, differ(steps=1000))


def test_prompt_longer_than_encoder_is_permanent_error(tiny):
    assert "takes at most 77" in problem(tiny, differ(prompt="person " * 77))


def test_suffix_counts_towards_length(tiny):
    assert "suffix included" in problem(tiny, ASK, prompt_suffix=" person" * 77)
