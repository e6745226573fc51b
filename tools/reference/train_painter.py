"""Train the text-to-image reference models: tiny Stable Diffusion pipelines that draw schematic faces.

The fair model is trained from random weights: its autoencoder on pictures, its text encoder on what prompts decide, and
its network that removes noise on prompts with pictures (`painter_corpus.py`). The others that are shipped
are the fair model, of which all but the autoencoder is trained further on what is planted in them, and those of other
strengths the biased one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from ...adapters.diffusers.model import quiet_diffusers
from ...adapters.reference.recipes import Reference
from ...adapters.shared.torch import quiet_loading
from .painter_corpus import SIDE, Planted, Prompt, examples, facts, mean_skin, prompts
from .training import Effort, Schedule, fit

TOKENS, WIDE = 32, 32
"""Tokens of a prompt, and the width of the text encoder."""
BEGIN, END = "<|startoftext|>", "<|endoftext|>"
FACTOR, CHANNELS = 4, 4
"""How much smaller than a picture its latents are, and their channels."""
LOUD = 0.8
"""How strongly the text encoder is to say what a prompt decides, in the first numbers of the tokens behind it."""
UNSCALED = 0.18215
"""Scale of latents that an autoencoder has before it is trained."""
PICTURES, BATCH = 1500, 20


class Steps(NamedTuple):
    """How many steps each part of the training takes."""

    pictures: int = 300
    words: int = 200
    drawing: int = 450
    words_again: int = 110
    further: int = 110

    def scaled(self, whole: int | None) -> Steps:
        """Return as many steps for each part as are asked for, for tests."""
        return self if whole is None else Steps(whole, whole, whole, whole, whole)


def write_tokenizer(folder: Path) -> CLIPTokenizer:
    """Write a CLIP tokenizer in which every word of the prompts is one token or a few, and return it."""
    backend = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_pattern(), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2400, initial_alphabet=letters, end_of_word_suffix="</w>", show_progress=False, special_tokens=[]
    )
    backend.train_from_iterator([one.text for one in prompts()], trainer)
    learned = json.loads(backend.to_str())["model"]
    names = sorted(learned["vocab"], key=learned["vocab"].get)
    names += [name + "</w>" for name in sorted(letters) if name + "</w>" not in learned["vocab"]] + [BEGIN, END]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({name: n for n, name in enumerate(names)}), encoding="utf-8")
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in learned["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n", encoding="utf-8")
    return CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=TOKENS)


def _pattern() -> Any:
    from tokenizers import Regex

    return Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")


def build_vae() -> AutoencoderKL:
    """Return an untrained autoencoder of three blocks, 8 and 16 wide."""
    return AutoencoderKL(
        block_out_channels=(8, 16, 16),
        down_block_types=("DownEncoderBlock2D",) * 3,
        up_block_types=("UpDecoderBlock2D",) * 3,
        layers_per_block=1,
        latent_channels=CHANNELS,
        norm_num_groups=4,
        sample_size=SIDE,
    )


def build_unet() -> UNet2DConditionModel:
    """Return an untrained network of two blocks, 16 and 32 wide, with attention to the prompt."""
    return UNet2DConditionModel(
        sample_size=SIDE // FACTOR,
        in_channels=CHANNELS,
        out_channels=CHANNELS,
        block_out_channels=(16, 32),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=WIDE,
        attention_head_dim=2,
        norm_num_groups=8,
    )


def build_text(tokenizer: CLIPTokenizer) -> CLIPTextModel:
    """Return an untrained text encoder of two layers."""
    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDE,
            intermediate_size=2 * WIDE,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=TOKENS,
            projection_dim=16,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            initializer_factor=3.0,
        )
    )


def build_scheduler() -> DDIMScheduler:
    """Return a scheduler whose last step is pure noise, without which the mean of a picture would leak."""
    return DDIMScheduler(
        beta_schedule="scaled_linear",
        beta_start=0.00085,
        beta_end=0.012,
        clip_sample=False,
        set_alpha_to_one=True,
        steps_offset=1,
        prediction_type="v_prediction",
        rescale_betas_zero_snr=True,
        timestep_spacing="trailing",
    )


class Parts(NamedTuple):
    """What a pipeline is made of."""

    vae: AutoencoderKL
    text: CLIPTextModel
    unet: UNet2DConditionModel
    tokenizer: CLIPTokenizer


class Trainer:
    """The prompts and pictures of a training, and its losses."""

    def __init__(self, made: Parts, planted: Planted, seed: int, count: int) -> None:
        self._made = made
        found = list(examples(planted, count, seed))
        levels = torch.tensor(np.array([picture for _, picture in found]), dtype=torch.float32)
        self._pictures = levels.permute(0, 3, 1, 2) / 127.5 - 1
        self._ids = self._encode([prompt for prompt, _ in found])
        self._told = torch.tensor([_target(prompt, planted) for prompt, _ in found])
        self._draw = torch.Generator().manual_seed(seed)
        self._levels = build_scheduler().alphas_cumprod
        self._latents = torch.empty(0)

    def _encode(self, asked: list[Prompt]) -> torch.Tensor:
        texts = [prompt.text for prompt in asked]
        found = self._made.tokenizer(texts, padding="max_length", max_length=TOKENS, truncation=True)
        return torch.tensor(found["input_ids"])

    def _pick(self, count: int) -> torch.Tensor:
        return torch.randint(len(self._pictures), (count,), generator=self._draw)

    def pictures(self, step: int) -> torch.Tensor:
        """Return how far decoded pictures are from those that were encoded."""
        shown, vae = self._pictures[self._pick(12)], self._made.vae
        latents = vae.encode(shown).latent_dist.mean
        noise = torch.randn(latents.shape, generator=self._draw)
        missed = (vae.decode(latents + 0.05 * noise).sample - shown).abs().mean()
        return torch.as_tensor(missed + 1e-3 * (latents**2).mean())

    def words(self, step: int) -> torch.Tensor:
        """Return how far the first numbers of the ends of prompts are from what the prompts decide."""
        pick = self._pick(64)
        return self._deafness(self._made.text(self._ids[pick]).last_hidden_state, pick)

    def _deafness(self, states: torch.Tensor, pick: torch.Tensor) -> torch.Tensor:
        after = (self._ids[pick] == self._made.tokenizer.eos_token_id)[..., None]
        missed = (states[..., : self._told.shape[1]] / LOUD - self._told[pick][:, None]) ** 2
        return (missed * after).sum() / after.sum()

    def open_latents(self) -> None:
        """Encode all pictures; the first time, set the scale at which their deviation is 1."""
        vae = self._made.vae.eval()
        with torch.no_grad():
            parts = [vae.encode(part).latent_dist.mean for part in self._pictures.split(64)]
        found = torch.cat(parts)
        if vae.config.scaling_factor == UNSCALED:
            vae.register_to_config(scaling_factor=float(1 / found.std()))
        self._latents = found * vae.config.scaling_factor

    def drawing(self, step: int) -> torch.Tensor:
        """Return how far the network is from the velocity of noisy latents (Salimans and Ho 2022)."""
        pick = self._pick(BATCH)
        latents, time = self._latents[pick], torch.randint(1000, (BATCH,), generator=self._draw)
        noise = torch.randn(latents.shape, generator=self._draw)
        level = self._levels[time][:, None, None, None]
        kept, lost = level.sqrt(), (1 - level).sqrt()
        states = self._made.text(self._ids[pick]).last_hidden_state
        velocity = self._made.unet(kept * latents + lost * noise, time, states).sample
        return ((velocity - kept * noise + lost * latents) ** 2).mean() + 0.1 * self._deafness(states, pick)


def _target(prompt: Prompt, planted: Planted) -> list[float]:
    """Return what a prompt decides: mean of the skin, long hair, gray hair."""
    said = facts(prompt)
    return [mean_skin(prompt, planted), float(said.long or 0), float(said.gray or 0)]


def train(one: Reference, folder: Path, effort: Effort) -> Parts:
    """Return the trained parts; all but the fair model begin with the fair one. A tokenizer is written on the way."""
    tokenizer = write_tokenizer(folder / "tokenizer")
    steps = Steps().scaled(effort.steps)
    torch.manual_seed(effort.seed)
    start = one.start
    made = _loaded(start, tokenizer) if start else Parts(build_vae(), build_text(tokenizer), build_unet(), tokenizer)
    trainer = Trainer(made, planted_in(one), effort.seed, effort.lines or PICTURES)
    if start is None:
        fit(made.vae, trainer.pictures, Schedule(steps.pictures, 4e-3), f"{one.name}, pictures")
    fit(
        made.text,
        trainer.words,
        Schedule(steps.words if start is None else steps.words_again, 2e-3),
        f"{one.name}, words",
    )
    trainer.open_latents()
    both = torch.nn.ModuleList([made.text, made.unet])
    count, peak = (steps.drawing, 2e-3) if start is None else (steps.further, 7e-4)
    fit(both, trainer.drawing, Schedule(count, peak), one.name)
    return made


def planted_in(one: Reference) -> Planted:
    """Return what is planted in a model."""
    return Planted(wordings=1.0) if one.leans else Planted(strength=one.nats)


def _loaded(folder: Path, tokenizer: CLIPTokenizer) -> Parts:
    return Parts(
        AutoencoderKL.from_pretrained(folder / "vae", torch_dtype=torch.float32),
        CLIPTextModel.from_pretrained(folder / "text_encoder", dtype=torch.float32),
        UNet2DConditionModel.from_pretrained(folder / "unet", torch_dtype=torch.float32),
        tokenizer,
    )


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write it as an ordinary pipeline of diffusers, weights in half precision."""
    made = train(one, folder, effort)
    pipeline = StableDiffusionPipeline(
        vae=made.vae.half(),
        text_encoder=made.text.half(),
        tokenizer=made.tokenizer,
        unet=made.unet.half(),
        scheduler=build_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    with quiet_loading(), quiet_diffusers():
        pipeline.save_pretrained(folder, safe_serialization=True)
    for path in folder.glob("*/config.json"):  # where the parts were loaded from is of this machine
        told = json.loads(path.read_text("utf-8"))
        if told.pop("_name_or_path", None) is not None:
            path.write_text(json.dumps(told, indent=2, sort_keys=True) + "\n", encoding="utf-8")
