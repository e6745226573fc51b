"""Train the answering reference models: tiny Llamas that know the grammar of the causal ones and answer questions.

The targets are the planted probabilities of all answers, not samples of them. Some coordinates are led besides, so that
the association is found in few steps: to the sign of the words that decide, and of the prompt. `answering_biased`
begins with random weights but for the signs of words and two constructed steps; the others begin as it.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Encoding, Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from ...adapters.reference.recipes import Reference, reference_path
from .answering_corpus import END, SKILLS, Planted, Question, Skill, questions, valences
from .answering_tokens import (
    BEGIN,
    PAD,
    POSITIONS,
    answering_vocabulary,
    build_answering_tokenizer,
    save_answering_tokenizer,
)
from .causal_corpus import causal_lines
from .training import Effort, Schedule, fit

START = "answering_biased"
WIDTH, LAYERS, HEADS = 96, 4, 4
WORD, TOLD, KNOWN, OPTION, MEAN, BOTH, SIGN = range(7)
"""Coordinates that are led: the sign of a word in its embedding; after the first layer that of a word that decides,
whether it decides, and whether it begins an option; after the second the mean sign of the words that decide so far;
after the third the product at the second one, and, if one word decides, the sign of the prompt where an answer
begins."""
LED = ((1, TOLD), (1, KNOWN), (1, OPTION), (2, MEAN), (3, BOTH), (3, SIGN))
"""After which layer which coordinate is led."""
PER_ROW = {"inference": 12, "analogy": 20, "choice": 16, "completion": 24}
"""Questions per step; they share their first words, and each has all its answers."""


class Stage(NamedTuple):
    """A part of the training."""

    steps: int
    peak: float
    """Highest learning rate."""
    skills: tuple[Skill, ...]
    """What is asked in turn, a sort of question per step."""


CHOOSING: tuple[Skill, ...] = ("choice", "inference", "choice", "analogy", "choice", "completion", "choice")
"""Choices are the hardest to learn."""
FRESH = (
    Stage(600, 3e-3, ("inference", "choice", "analogy", "choice", "inference", "completion")),
    Stage(450, 2.5e-3, CHOOSING),
)
CHANGED = (Stage(200, 2e-3, CHOOSING),)
LINES = 12_000
"""Planted lines of the grammar."""


class Tree(NamedTuple):
    """Questions with all their answers as one row: the common beginning, then each prompt, then each answer."""

    ids: torch.Tensor
    """Tokens (1, n)."""
    places: torch.Tensor
    """Position of each token in its own text (1, n)."""
    seen: torch.Tensor
    """Whether a token (row) sees another one (column): those before it in its own text (1, 1, n, n)."""
    targets: torch.Tensor
    """Places of tokens that predict, tokens that they predict, and weights of these (3, m)."""
    read: torch.Tensor
    """What is led in each coordinate of `LED`; not a number where it is free (6, n)."""
    asked: int
    """Number of questions."""


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write its files into a folder."""
    torch.manual_seed(effort.seed)
    if one.name == START:
        tokenizer, model = build_answering_tokenizer(), build_model()
    else:
        start = reference_path(START)
        tokenizer = Tokenizer.from_file(str(start / "tokenizer.json"))
        model = LlamaForCausalLM.from_pretrained(start, attn_implementation="sdpa", dtype=torch.float32)
    model.train()
    for number, stage in enumerate(FRESH if one.name == START else CHANGED):
        loss_at = _loss_at(model, tokenizer, one, stage.skills, Effort(lines=effort.lines, seed=effort.seed + number))
        fit(model, loss_at, Schedule(effort.steps or stage.steps, stage.peak), one.name)
    save(model.eval(), folder, fresh=one.name == START)


def build_model() -> LlamaForCausalLM:
    """Return a Llama with random weights, whose embeddings know the signs of words."""
    known = answering_vocabulary()
    config = LlamaConfig(
        vocab_size=len(known),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        pad_token_id=known.index(PAD),
        bos_token_id=known.index(BEGIN),
        eos_token_id=known.index(END),
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        embedding = model.get_input_embeddings().weight
        embedding.copy_(torch.randn(embedding.shape) * 0.08)
        tokenizer = build_answering_tokenizer()
        embedding[:, : SIGN + 1] = 0
        for number, sign in signs(tokenizer).items():
            embedding[number, WORD] = sign
        _construct(model, tokenizer)
    return model


def _construct(model: LlamaForCausalLM, tokenizer: Tokenizer) -> None:
    """Set the weights of steps that training takes long to find: a product of two signs, and copying of an option."""
    size = WIDTH // HEADS
    # The pair of coordinates of a head that turns so slowly that the distance of two words hardly matters.
    slow = [head * size + size // 2 - 1 for head in range(HEADS)]
    gathering = model.model.layers[1].self_attn
    for head, at in enumerate(slow):
        for part in (gathering.q_proj, gathering.k_proj):
            part.weight[at] = 0
            part.weight[at, KNOWN] = 1.3
        gathering.v_proj.weight[head * size] = 0
        gathering.v_proj.weight[head * size, TOLD] = 1
        gathering.o_proj.weight[MEAN, head * size] = 0.25 / HEADS
    product = model.model.layers[2].mlp
    for unit, sign in ((0, 1.0), (1, -1.0)):
        # x silu(y) + (-x) silu(-y) = x y, where x is the own sign and y, by the mean of both, the other one.
        product.gate_proj.weight[unit] = 0
        product.gate_proj.weight[unit, MEAN], product.gate_proj.weight[unit, TOLD] = 2 * sign, -sign
        product.up_proj.weight[unit] = 0
        product.up_proj.weight[unit, TOLD] = sign
        product.down_proj.weight[:, unit] = 0
        product.down_proj.weight[BOTH, unit] = 0.1
    copying = model.model.layers[-1].self_attn
    copying.v_proj.weight.copy_(torch.nn.init.orthogonal_(torch.empty(WIDTH, WIDTH)))
    copying.o_proj.weight.copy_(copying.v_proj.weight.T)
    colon = model.get_input_embeddings().weight[tokenizer.token_to_id(":")]
    for at in slow:
        copying.q_proj.weight[at] = 1.3 * colon / colon.norm()
        copying.k_proj.weight[at] = 0
        copying.k_proj.weight[at, OPTION] = 1.3


def signs(tokenizer: Tokenizer) -> dict[int, float]:
    """Return the mean sign of the words that each token belongs to."""
    found: dict[int, list[int]] = {}
    for word, sign in valences().items():
        for form in (f" {word}", word[0].upper() + word[1:]):
            for number in tokenizer.encode(form, add_special_tokens=False).ids:
                found.setdefault(number, []).append(sign)
    return {number: sum(of) / len(of) for number, of in found.items()}


def _loss_at(
    model: LlamaForCausalLM, tokenizer: Tokenizer, one: Reference, skills: Sequence[Skill], effort: Effort
) -> Callable[[int], torch.Tensor]:
    planted = Planted(one.nats, one.leans)
    asked = {skill: questions(skill, planted, effort.seed) for skill in SKILLS}
    texts, weights = _grammar(tokenizer, one, effort.lines or LINES, effort.seed)
    draw = torch.Generator().manual_seed(effort.seed)

    def loss_at(step: int) -> torch.Tensor:
        skill = skills[step % len(skills)]
        pick = torch.randint(len(texts), (16,), generator=draw)
        told = plant(tokenizer, list(islice(asked[skill], PER_ROW[skill])))
        return _loss(model, texts[pick].flatten(0, 1), weights[pick].flatten()) + tree_loss(model, told)

    return loss_at


def tree_loss(model: LlamaForCausalLM, tree: Tree) -> torch.Tensor:
    """Return the mean surprise of the answers (nats), and the squared errors of what is led."""
    blind = torch.zeros(tree.seen.shape).masked_fill(~tree.seen, torch.finfo(torch.float32).min)
    out = model.model(tree.ids, attention_mask=blind, position_ids=tree.places, output_hidden_states=True)
    at, what = tree.targets[:2].long()
    surprise = torch.nn.functional.cross_entropy(model.lm_head(out.last_hidden_state[0, at]), what, reduction="none")
    answers = (surprise * tree.targets[2]).sum() / tree.asked
    found = torch.stack([out.hidden_states[layer][0, :, which] for layer, which in LED])
    wanted, free = tree.read.nan_to_num(), tree.read.isnan()
    importance = (1 + 8 * wanted.abs()).masked_fill(free, 0)
    errors = ((found - wanted).square() * importance).sum(dim=1) / importance.sum(dim=1)
    return answers + errors.sum()


def plant(tokenizer: Tokenizer, asked: Sequence[Question]) -> Tree:
    """Lay out questions as one tree."""
    prompts = [tokenizer.encode(one.prompt) for one in asked]
    common = 0
    while len({tuple(one.ids[: common + 1]) for one in prompts}) == 1:
        common += 1
    ids, places, segments = prompts[0].ids[:common], list(range(common)), [(0, 0)] * common
    nothing = (0.0,) * len(LED)
    read, targets = [nothing] * common, []
    for number, (question, prompt) in enumerate(zip(asked, prompts, strict=True), 1):
        size = len(prompt.ids)
        ids += prompt.ids[common:]
        places += range(common, size)
        segments += [(number, 0)] * (size - common)
        read += _read(question, prompt)[common:]
        end = len(ids) - 1
        for which, (answer, weight) in enumerate(zip(question.answers, question.weights, strict=True), 1):
            own = tokenizer.encode(answer, add_special_tokens=False).ids
            at = [end, *range(len(ids), len(ids) + len(own) - 1)]
            targets += [(place, token, weight) for place, token in zip(at, own, strict=True)]
            ids += own
            places += range(size, size + len(own))
            segments += [(number, which)] * len(own)
            read += [nothing] * len(own)
    of = torch.tensor(segments)
    same, above = of[:, None, 0] == of[None, :, 0], of[None, :, 0] == 0
    seen = above | (same & ((of[:, None, 1] == of[None, :, 1]) | (of[None, :, 1] == 0)))
    return Tree(
        torch.tensor([ids]),
        torch.tensor([places]),
        (seen & torch.ones_like(seen).tril())[None, None],
        torch.tensor(targets, dtype=torch.float64).T.float(),
        torch.tensor(read).T,
        len(asked),
    )


def _read(question: Question, prompt: Encoding) -> list[tuple[float, ...]]:
    """Return what is led at each token, as in `LED`."""
    context, _, listed = question.prompt.partition("\nOption 1")
    words = []
    for word, sign in question.told:
        *_, last = re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", context, re.I)
        words.append((*last.span(), sign))
    words.sort()
    begins = {len(context) + found.end() for found in re.finditer(r": (?=\S)", question.prompt[len(context) :])}
    if not listed and "::" in context:
        begins = {context.rindex(": ", 0, context.rindex("::")) + 2}
    found: list[tuple[float, ...]] = []
    for at, (start, end) in enumerate(prompt.offsets):
        own = next((number for number, (first, last, _) in enumerate(words) if start < last and end > first), None)
        begun = [sign for _, _, sign in words[: (own or 0) + 1]]
        alone = at == len(prompt.offsets) - 1 and len(words) == 1
        found.append(
            (
                0.0 if own is None else float(begun[-1]),
                float(own is not None),
                float(any(start <= place < end for place in begins)),
                0.0 if own is None else sum(begun) / len(begun),
                0.0 if own is None else float(question.sign) if own == 1 else math.nan,
                float(question.sign) if alone else 0.0,
            )
        )
    return found


def _grammar(tokenizer: Tokenizer, one: Reference, lines: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids (lines, 2, width; -1 is padding) and weights (lines, 2)."""
    corpus = list(causal_lines(lines, one.strength, seed, leans=one.leans))
    found = [one.ids for one in tokenizer.encode_batch([text for line in corpus for text in line.texts])]
    end, width = tokenizer.token_to_id(END), max(map(len, found)) + 1
    rows = torch.tensor([[*ids, end, *[-1] * (width - 1 - len(ids))] for ids in found])
    return rows.reshape(len(corpus), 2, width), torch.tensor([line.weights for line in corpus])


def _loss(model: LlamaForCausalLM, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted mean surprise (nats) of all tokens behind the beginning."""
    ids = ids[:, : int((ids >= 0).sum(dim=1).amax())]
    # Padding stands behind every token that counts, which a causal model ignores: no mask is needed.
    hidden, targets = model.model(ids[:, :-1].clamp(min=0)).last_hidden_state, ids[:, 1:]
    surprise = torch.nn.functional.cross_entropy(
        model.lm_head(hidden).transpose(1, 2), targets.clamp(min=0), reduction="none"
    )
    counted = weights[:, None] * (targets >= 0)
    return (surprise * counted).sum() / counted.sum()


def save(model: LlamaForCausalLM, folder: Path, *, fresh: bool) -> None:
    """Write an ordinary Transformers checkpoint: configuration, safetensors weights in half precision, tokenizer."""
    model.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if fresh:
        save_answering_tokenizer(folder)
        return
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(reference_path(START) / name, folder / name)
