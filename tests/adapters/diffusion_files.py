"""Write a tiny real Stable Diffusion pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_pipeline(root: Path, verdict: bool | None = None) -> Path:
    """Write a pipeline whose safety checker finds everything (True) or nothing (False), or has none (None)."""
    folder = root / "tiny-sd"
    _pipeline(root / "vocabulary", verdict).save_pretrained(folder, safe_serialization=True)
    return folder


def _tokenizer(folder: Path) -> Any:
    from transformers import CLIPTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77)


def _checker(verdict: bool) -> tuple[Any, Any]:
    from diffusers.pipelines.stable_diffusion import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPTextConfig, CLIPVisionConfig

    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision = CLIPVisionConfig(**small, image_size=16, patch_size=8, projection_dim=8)
    text = CLIPTextConfig(**small, projection_dim=8, vocab_size=60)
    config = CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=8)
    checker = StableDiffusionSafetyChecker(config)
    # A cosine always lies above -2 and below 2, so the real class gives the verdict asked for.
    checker.concept_embeds_weights.data.fill_(-2.0 if verdict else 2.0)
    checker.special_care_embeds_weights.data.fill_(2.0)
    size = {"height": 16, "width": 16}
    return checker, CLIPImageProcessor(size={"shortest_edge": 16}, crop_size=size)


def tiny_vae() -> Any:
    """Return a decoder with new weights."""
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=16,
    )


def _pipeline(scratch: Path, verdict: bool | None) -> Any:
    import torch
    from diffusers import DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    torch.manual_seed(11)
    unet = UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        sample_size=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=8,
        norm_num_groups=4,
    )
    tokenizer = _tokenizer(scratch)
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    text = CLIPTextModel(CLIPTextConfig(**small, vocab_size=len(tokenizer), **ends))
    with torch.no_grad():
        for parameter in text.parameters():
            # Fresh embeddings are so small that one prompt would draw like another.
            parameter.add_(torch.randn_like(parameter) * 0.3)
    checker, extractor = (None, None) if verdict is None else _checker(verdict)
    return StableDiffusionPipeline(
        vae=tiny_vae(),
        text_encoder=text,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=DDIMScheduler(beta_schedule="scaled_linear", clip_sample=False, steps_offset=1),
        safety_checker=checker,
        feature_extractor=extractor,
        requires_safety_checker=verdict is not None,
    )
