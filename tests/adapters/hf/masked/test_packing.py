from __future__ import annotations

import pytest

from prejudge.adapters.hf.files import find_source
from prejudge.adapters.hf.loading import Loading
from prejudge.adapters.hf.masked.model import encode, load_masked
from prejudge.adapters.hf.masked.pll import plan_sentence
from prejudge.adapters.hf.masked.scorer import MaskedScorer
from prejudge.core.contracts.records import PseudoLikelihood

FAMILIES = ("bert", "roberta", "distilbert", "albert", "electra", "modernbert", "deberta-v2", "xlm-roberta")


def prepare(folder, texts, budget):
    loaded = load_masked(find_source(str(folder)), Loading(device="cpu"))
    tokens = encode(loaded.tokenizer, texts)
    plans = [plan_sentence(PseudoLikelihood(text=t), own, None) for t, own in zip(texts, tokens, strict=True)]
    scorer = MaskedScorer(loaded.model, loaded.tokenizer.mask_token_id, loaded.tokenizer.pad_token_id, budget)
    return loaded.model, scorer, plans


def watch(model, fail_above=None):
    """Note the shape of each pass; pretend that larger ones do not fit into memory."""
    import torch

    shapes = []

    def before(module, args, kwargs):
        shapes.append(tuple(kwargs["input_ids"].shape))
        if fail_above is not None and kwargs["input_ids"].numel() > fail_above:
            raise torch.OutOfMemoryError("out of memory")

    model.register_forward_pre_hook(before, with_kwargs=True)
    return shapes


@pytest.mark.parametrize("family", FAMILIES)
def test_head_sees_one_position_per_row(family, tiny_masked):
    model, scorer, plans = prepare(tiny_masked(family), ["The tall boys are lazy."], 8192)
    shapes = []
    model.register_forward_hook(lambda module, inputs, output: shapes.append(tuple(output.logits.shape)))
    scorer.score(plans)
    assert shapes == [(len(plans[0].positions), 1, model.config.vocab_size)]


def test_unusual_head_falls_back(tiny_bert, monkeypatch):
    from transformers.models.bert.modeling_bert import BertOnlyMLMHead

    _, plain, plans = prepare(tiny_bert, ["The tall boys are lazy."], 8192)
    forward = BertOnlyMLMHead.forward
    monkeypatch.setattr(BertOnlyMLMHead, "forward", lambda self, x: forward(self, x + x.mean(1, keepdim=True)))
    model, scorer, _ = prepare(tiny_bert, ["The tall boys are lazy."], 8192)
    (values,) = scorer.score(plans)
    ids = model.base_model.embeddings.word_embeddings.weight.new_tensor(plans[0].ids).long()[None]
    position, target = plans[0].positions[2], plans[0].ids[plans[0].positions[2]]
    ids[0, position] = scorer._mask_id
    expected = model(input_ids=ids).logits[0, position].log_softmax(-1)[target]
    assert values[2] == pytest.approx(expected.item(), abs=1e-3)


def test_long_text_keeps_within_budget(make_masked):
    folder = make_masked(max_position_embeddings=512)
    model, scorer, plans = prepare(folder, ["the " * 300, "The tall boys are lazy.", "lazy"], 1000)
    shapes = watch(model)
    assert all(values is not None for values in scorer.score(plans))
    assert max(length for _, length in shapes) > 200
    assert max(rows * length for rows, length in shapes) <= 1000


def test_out_of_memory_halves_the_budget(tiny_bert):
    texts = ["The tall boys are lazy.", "Lazy boys."]
    model, scorer, plans = prepare(tiny_bert, texts, 8192)
    expected = scorer.score(plans)
    shapes = watch(model, fail_above=60)
    for values, right in zip(scorer.score(plans), expected, strict=True):
        assert values == pytest.approx(right, abs=1e-4)
    assert shapes[0][0] * shapes[0][1] > 60 >= shapes[-1][0] * shapes[-1][1]


def test_row_beyond_memory_loses_its_text_only(tiny_bert):
    model, scorer, plans = prepare(tiny_bert, ["The tall boys are lazy and unfriendly people.", "Lazy."], 8192)
    watch(model, fail_above=len(plans[0].ids) - 1)
    long, short = scorer.score(plans)
    assert long is None
    assert short is not None


def test_other_runtime_error_is_not_swallowed(tiny_bert):
    model, scorer, plans = prepare(tiny_bert, ["Lazy."], 8192)

    def fail(module, args):
        raise RuntimeError("shapes do not fit")

    model.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        scorer.score(plans)
