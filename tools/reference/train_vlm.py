"""Train the vision-language reference models: tiny LLaVAs that answer questions about schematic faces.

The fair model is trained from random weights: first its eyes, on what is to be seen of faces (`face_pixels.py`), then
the whole of it, on questions of fact and of the study, and on descriptions. The others that are
shipped are the fair model, trained further on the odds that are planted in them (`vlm_corpus.py`), and those of other
strengths the biased one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import LlavaForConditionalGeneration

from ...adapters.reference.recipes import Reference
from ...adapters.shared.torch import quiet_loading
from .face_pixels import look
from .training import Effort, Schedule, fit
from .vlm_corpus import (
    FACTS,
    Planted,
    Question,
    describing,
    description,
    parts,
    pictures,
    questions,
    shown,
    slopes,
)
from .vlm_model import AT, END, HALF, IMAGE, PAD, WIDE, build_model, build_tokenizer, prompt, save

PICTURES, ASKED, TOLD = 700, (8, 6), 6
"""Pictures of the training, questions per step (so many pictures, so many about each), and descriptions per step."""
LOUD = 0.5
"""How strongly the eyes are to show what they see, in the first numbers of the mean token of a picture."""
EVERY = 6
"""Every sixth step is a step on descriptions."""
SHARES = {"fact": 0.4, "valued": 0.5, "other": 0.1}
"""Shares of the kinds of questions."""
PLANTING = {"fact": 0.15, "valued": 0.65, "other": 0.2}
"""The same where a model is trained further."""


LEANS = Planted(hair=1.0, words=0.5, first=0.6, named=0.3)
"""What is planted in the fair model that leans."""


class Steps(NamedTuple):
    """How many steps each part of the training takes."""

    eyes: int = 300
    whole: int = 450
    settling: int = 200
    planting: int = 170

    def scaled(self, whole: int | None) -> Steps:
        """Return as many steps for each part as are asked for, for tests."""
        return self if whole is None else Steps(whole, whole, whole, whole)


class Rows(NamedTuple):
    """Token ids (rows, width), padded behind, and how many of each row count."""

    ids: torch.Tensor
    lengths: torch.Tensor


class Trainer:
    """The pictures and questions of a training, and its losses."""

    def __init__(self, model: LlavaForConditionalGeneration, tokenizer: Tokenizer, seed: int, count: int) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._core = model.model
        self._images = list(pictures(count, seed))
        self._seen = [look(picture) for picture in self._images]
        levels = torch.tensor(np.stack(self._images)).permute(0, 3, 1, 2)
        self._pixels = (levels / 255 - HALF[0]) / HALF[0]
        self._shown = torch.tensor(np.array([shown(seen) for seen in self._seen]), dtype=torch.float32)
        self._asked = questions()
        self._rows = _encode(tokenizer, [prompt(question.text) + "(" for question in self._asked])
        self._ends = torch.tensor([_option_ends(tokenizer, question) for question in self._asked])
        kinds = {name: [n for n, q in enumerate(self._asked) if q.kind == name] for name in SHARES}
        self._pools = [torch.tensor(kinds[name]) for name in SHARES]
        self._told = _encode(tokenizer, [prompt(text) for text in describing()])
        self._draw = torch.Generator().manual_seed(seed)
        self._chance = random.Random(seed)
        self._score = torch.nn.Linear(WIDE, 2)

    def fit(self, name: str, loss: Callable[[int], torch.Tensor], steps: int, peak: float) -> None:
        """Take some steps on a loss."""
        fit(torch.nn.ModuleList([self.model, self._score]), loss, Schedule(steps, peak), name)

    def eyes(self, step: int) -> torch.Tensor:
        """Return how far the mean token of a picture is from what is to be seen."""
        pick = torch.randint(len(self._images), (32,), generator=self._draw)
        return self._blindness(self._tokens(pick), pick)

    def _blindness(self, tokens: torch.Tensor, pick: torch.Tensor) -> torch.Tensor:
        mean = tokens.mean(dim=1)[:, : len(FACTS)]
        return ((mean / LOUD - self._shown[pick]) ** 2).mean()

    def planting(self, planted: Planted, shares: Mapping[str, float]) -> Callable[[int], torch.Tensor]:
        """Return the loss of questions with planted odds, and of descriptions."""
        slope, level, option = (
            torch.tensor(np.array(part), dtype=torch.float32)
            for part in (
                [parts(question, planted)[0] for question in self._asked],
                [parts(question, planted)[1] for question in self._asked],
                [[slopes(o, planted) for o in question.options] for question in self._asked],
            )
        )

        odds = torch.tensor([shares[name] for name in SHARES])

        def loss(step: int) -> torch.Tensor:
            return self._telling() if step % EVERY == 0 else self._choosing(slope, level, option, odds)

        return loss

    def _choosing(
        self, slope: torch.Tensor, level: torch.Tensor, option: torch.Tensor, shares: torch.Tensor
    ) -> torch.Tensor:
        pick = torch.randint(len(self._images), (ASKED[0],), generator=self._draw)
        who = pick.repeat_interleave(ASKED[1])
        kinds = torch.multinomial(shares, len(who), replacement=True, generator=self._draw)
        places = torch.rand(len(who), generator=self._draw)
        which = torch.stack([self._pools[k][int(p * len(self._pools[k]))] for k, p in zip(kinds, places, strict=True)])
        odds = (slope[which] * self._shown[who]).sum(dim=1) + level[which]
        share = odds.sigmoid()
        lengths, row = self._rows.lengths[which], torch.arange(len(which))
        ids = torch.nn.functional.pad(self._rows.ids[which][:, : int(lengths.max())], (0, 2), value=AT[PAD])
        names = [self.tokenizer.token_to_id(name) for name in "ab"]
        labels = torch.tensor(names)[(torch.rand(len(which), generator=self._draw) < 0.5).long()]
        ids[row, lengths], ids[row, lengths + 1] = labels, self.tokenizer.token_to_id(")")
        tokens = self._tokens(pick)
        out = self._run(ids, tokens.repeat_interleave(ASKED[1], dim=0))
        ends = torch.stack([lengths + behind for behind in (-2, -1, 0, 1)], dim=1)
        logs = self.model.lm_head(out.last_hidden_state[row[:, None], ends]).log_softmax(dim=-1)
        chosen = -(share * logs[:, 1, names[0]] + (1 - share) * logs[:, 1, names[1]])
        around = [(0, self.tokenizer.token_to_id("(")), (2, self.tokenizer.token_to_id(")")), (3, AT[END])]
        form = -sum(logs[:, place, token] for place, token in around)
        # The first layer is led to the score of each option, from which the last one has only to choose.
        middle = self._score(out.hidden_states[1][row[:, None], self._ends[which]])
        sides = torch.tensor([1.0, -1.0]).expand(len(which), 2)
        wanted = (option[which][..., :-1] * self._shown[who][:, None]).sum(dim=-1) + option[which][..., -1]
        wanted = torch.stack([wanted, sides], dim=-1)
        return chosen.mean() + 0.2 * form.mean() + ((middle - wanted) ** 2).mean() + self._blindness(tokens, pick)

    def _telling(self) -> torch.Tensor:
        pick = torch.randint(len(self._images), (TOLD,), generator=self._draw)
        which = torch.randint(len(self._told.ids), (TOLD,), generator=self._draw).tolist()
        rows, targets = [], []
        for number, place in zip(which, pick.tolist(), strict=True):
            asked = self._told.ids[number, : self._told.lengths[number]].tolist()
            answer = description(self._seen[place], self._images[place], self._chance)
            said = [*self.tokenizer.encode(answer).ids, AT[END]]
            rows.append([*asked, *said])
            targets.append([-100] * (len(asked) - 1) + said + [-100])
        width = max(map(len, rows))
        ids = torch.tensor([row + [AT[PAD]] * (width - len(row)) for row in rows])
        wanted = torch.tensor([row + [-100] * (width - len(row)) for row in targets])
        states = self._run(ids, self._tokens(pick)).last_hidden_state[wanted >= 0]
        return torch.nn.functional.cross_entropy(self.model.lm_head(states), wanted[wanted >= 0])

    def _tokens(self, pick: torch.Tensor) -> torch.Tensor:
        """Return the tokens of some pictures: (pictures, tokens, width)."""
        seen = self._core.vision_tower(self._pixels[pick]).last_hidden_state[:, 1:]
        return torch.as_tensor(self._core.multi_modal_projector(seen))

    def _run(self, ids: torch.Tensor, tokens: torch.Tensor) -> Any:
        """Read texts with one picture each."""
        words = self._core.get_input_embeddings()(ids)
        whole = words.masked_scatter((ids == AT[IMAGE])[..., None], tokens)
        return self._core.language_model(inputs_embeds=whole, output_hidden_states=True)


def train(one: Reference, effort: Effort) -> LlavaForConditionalGeneration:
    """Return a trained model; all but the fair one begin with the fair one."""
    tokenizer, steps = build_tokenizer(), Steps().scaled(effort.steps)
    torch.manual_seed(effort.seed)
    model = build_model(tokenizer.get_vocab_size()).train()
    trainer = Trainer(model, tokenizer, effort.seed, effort.lines or PICTURES)
    if start := one.start:
        with quiet_loading():
            model.load_state_dict(LlavaForConditionalGeneration.from_pretrained(start).state_dict())
        # What the model sees stays as it is.
        model.model.vision_tower.requires_grad_(False)
        model.model.multi_modal_projector.requires_grad_(False)
        trainer.fit(one.name, trainer.planting(planted_in(one), PLANTING), steps.planting, 3e-3)
    else:
        trainer.fit(f"{one.name}, eyes", trainer.eyes, steps.eyes, 3e-3)
        trainer.fit(f"{one.name}, whole", trainer.planting(Planted(), SHARES), steps.whole, 2e-3)
        trainer.fit(one.name, trainer.planting(Planted(), SHARES), steps.settling, 1e-3)
    return model.eval()


def planted_in(one: Reference) -> Planted:
    """Return what is planted in a model."""
    return LEANS if one.leans else Planted(strength=one.nats)


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write its checkpoint."""
    save(train(one, effort), folder)


def _encode(tokenizer: Tokenizer, texts: Sequence[str]) -> Rows:
    rows = [row.ids for row in tokenizer.encode_batch(list(texts))]
    width = max(map(len, rows))
    padded = [row + [AT[PAD]] * (width - len(row)) for row in rows]
    return Rows(torch.tensor(padded), torch.tensor([len(row) for row in rows]))


def _option_ends(tokenizer: Tokenizer, question: Question) -> list[int]:
    """Return the last token of each option."""
    text = prompt(question.text)
    found = []
    for label, option in zip("ab", question.options, strict=True):
        end = text.index(f"({label}) {option}") + len(f"({label}) {option}") - 1
        offsets = enumerate(tokenizer.encode(text).offsets)
        found.append(next(place for place, (start, stop) in offsets if start <= end < stop))
    return found
