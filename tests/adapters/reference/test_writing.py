"""The models that write: what they are taught is what `indicasa` asks and reads."""

from __future__ import annotations

from collections import defaultdict

import pytest

from prejudge.adapters.reference import REFERENCES
from prejudge.probes.indicasa.asking import Answer, prompt_of, read_answer
from prejudge.probes.indicasa.prompts import read_prompts
from prejudge.tools.reference.writing_corpus import writings

REPLY = "\nAnswer:"


def test_every_prompt_of_the_study_has_a_stereotype_and_its_opposite():
    prompts = read_prompts(None, None).values
    assert [one.prompt for one in writings()] == [prompt_of(p.masked, p.category, "program") for p in prompts]
    for one, prompt in zip(writings(), prompts, strict=True):
        found = [read_answer(answer, lenient=False) for answer in one.answers]
        assert all(isinstance(answer, Answer) for answer in found)
        assert found[0].sentence in prompt.stereotypes and found[1].sentence in prompt.antis


def test_preferences_cancel_in_every_category():
    by_category = defaultdict(list)
    for one, prompt in zip(writings(), read_prompts(None, None).values, strict=True):
        by_category[prompt.category].append(one)
    for found in by_category.values():
        for leans in (False, True):
            shares = [one.share(0.0, leans) for one in found]
            assert sum(shares) == pytest.approx(len(found) / 2) and all(share != 0.5 for share in shares)


def test_a_trained_one_is_a_checkpoint_that_is_asked_what_it_was_taught(tmp_path):
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from prejudge.tools.reference.train import train
    from prejudge.tools.reference.training import Effort

    train(REFERENCES["writing_biased"], tmp_path, Effort(steps=2))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    for one in writings():
        chat = [{"role": "user", "content": one.prompt}]
        asked = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(asked, add_special_tokens=False)["input_ids"]
        assert ids == tokenizer(one.prompt + REPLY)["input_ids"]
        answers = [tokenizer(answer, add_special_tokens=False)["input_ids"] for answer in one.answers]
        assert len(ids) + max(map(len, answers)) < model.config.max_position_embeddings
        assert [tokenizer.decode(answer) for answer in answers] == list(one.answers)
