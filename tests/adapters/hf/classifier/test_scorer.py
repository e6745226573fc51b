"""`hf-classifier`: probabilities, compared with plain forward passes."""

from __future__ import annotations

import shutil

import pytest

from prejudge.adapters.hf.classifier.scorer import ClassifierScorer
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Classification, Classify

from .asking import NLI, SINGLES, TEXTS, ask, build, naive

PAIRS = tuple(Classify(text=text, pair=other) for text, other in zip(TEXTS, reversed(TEXTS), strict=True))


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra"])
@pytest.mark.parametrize("requests", [SINGLES, PAIRS], ids=["single", "pair"])
def test_probabilities_equal_plain_forward_pass(family, requests, tiny_nli):
    for request, answer in zip(requests, ask(tiny_nli(family), requests), strict=True):
        expected = dict(zip(NLI, naive(tiny_nli(family), request), strict=True))
        assert answer.probabilities == pytest.approx(expected, abs=1e-5)


def test_softmax_sums_to_one(nli):
    for answer in ask(nli, SINGLES + PAIRS):
        assert sum(answer.probabilities.values()) == pytest.approx(1, abs=1e-12)


def test_order_of_pair_matters(nli):
    there, back = ask(nli, [Classify(text=TEXTS[0], pair=TEXTS[2]), Classify(text=TEXTS[2], pair=TEXTS[0])])
    assert there.probabilities != pytest.approx(back.probabilities, abs=1e-3)


def test_token_types_reach_the_model(nli, tmp_path):
    blind = shutil.copytree(nli, tmp_path / "blind")
    path = blind / "tokenizer_config.json"
    path.write_text(path.read_text().replace("token_type_ids", "attention_mask"))
    (seen,), (unseen,) = ask(nli, PAIRS[:1]), ask(blind, PAIRS[:1])
    assert seen.probabilities != pytest.approx(unseen.probabilities, abs=1e-3)


def test_unknown_token_type_is_an_error(make_classifier):
    one, two = ask(make_classifier(type_vocab_size=1), [SINGLES[0], Classify(text="Lazy boys.", pair="Lazy girls.")])
    assert isinstance(one, Classification)
    assert isinstance(two, PermanentError) and two.code == "request.tokenizer"


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_answer_is_independent_of_batch(family, tiny_nli):
    requests = [*SINGLES, *PAIRS, *SINGLES]
    together = ask(tiny_nli(family), requests, token_budget=100)
    singles, pairs = ([ask(tiny_nli(family), [one], token_budget=1)[0] for one in some] for some in (SINGLES, PAIRS))
    for answer, alone in zip(together, [*singles, *pairs, *singles], strict=True):
        assert answer.probabilities == pytest.approx(alone.probabilities, abs=1e-5)


def test_half_precision_is_near(nli):
    for exact, rough in zip(ask(nli, SINGLES), ask(nli, SINGLES, dtype="bfloat16"), strict=True):
        assert rough.probabilities == pytest.approx(exact.probabilities, abs=0.05)
        assert rough.probabilities != exact.probabilities


def test_usage_counts_tokens(nli):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(nli)
    for request, answer in zip(PAIRS, ask(nli, PAIRS), strict=True):
        assert answer.usage.input_tokens == len(tokenizer(request.text, request.pair)["input_ids"])


@pytest.mark.parametrize(("family", "most"), [("bert", 160), ("roberta", 158)])
def test_too_long_is_an_error_with_numbers(family, most, tiny_nli):
    before, long, after = ask(tiny_nli(family), [SINGLES[0], Classify(text="lazy " * 300), SINGLES[0]])
    assert isinstance(long, PermanentError)
    assert long.code == "request.too-long" and str(most) in str(long) and "truncate" in str(long)
    assert before.probabilities == pytest.approx(after.probabilities, abs=1e-6)


def test_longest_text_still_fits(tiny_nli):
    for family, most in (("bert", 160), ("roberta", 158)):
        answers = ask(tiny_nli(family), [Classify(text="a " * n) for n in range(20, 170)])
        counts = [answer.usage.input_tokens for answer in answers if isinstance(answer, Classification)]
        assert most - 2 < max(counts) <= most


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_truncation_is_asked_for_and_recorded(family, tiny_nli):
    folder = tiny_nli(family)
    most = 160 if family == "bert" else 158
    requests = [Classify(text="lazy " * 300), Classify(text="lazy " * 300, pair="tall boys"), SINGLES[0]]
    answers = ask(folder, requests, truncate=True)
    assert [answer.usage.input_tokens for answer in answers[:2]] == [most, most]
    assert answers[2] == ask(folder, SINGLES[:1])[0]
    assert build(folder, truncate=True).identity.settings["truncate"] is True
    assert "truncate" not in build(folder).identity.settings


def test_truncated_pair_keeps_its_short_text(nli):
    one, other = ask(
        nli,
        [Classify(text="lazy " * 300, pair="tall boys"), Classify(text="lazy " * 300, pair="obese girls")],
        truncate=True,
    )
    assert one.probabilities != pytest.approx(other.probabilities, abs=1e-4)


def test_causal_classifier_without_padding_token(make_classifier):
    folder = make_classifier("gpt2", labels=NLI, pad_token_id=None, n_embd=32, n_layer=2, n_head=2, n_positions=64)
    requests = (*SINGLES, *SINGLES)
    for request, answer in zip(requests, ask(folder, requests), strict=True):
        assert list(answer.probabilities.values()) == pytest.approx(naive(folder, request), abs=1e-5)


def test_rows_that_differ_in_end_tokens(make_classifier):
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    folder = make_classifier("bart", labels=NLI, **sizes, **heads, decoder_start_token_id=0)
    requests = [Classify(text="a [UNK] a"), Classify(text="a [SEP] a"), Classify(text="[UNK] a a")]
    answers = ask(folder, requests)
    assert len({answer.usage.input_tokens for answer in answers}) == 1
    for request, answer in zip(requests, answers, strict=True):
        assert list(answer.probabilities.values()) == pytest.approx(naive(folder, request), abs=1e-5)


def test_not_finite_is_an_error(copied):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / "model.safetensors")
    tensors["classifier.weight"][0, 0] = float("nan")
    save_file(tensors, copied / "model.safetensors", {"format": "pt"})
    (answer,) = ask(copied, SINGLES[:1])
    assert isinstance(answer, PermanentError) and answer.code == "request.not-finite"


def test_out_of_memory_halves_the_pass(nli, monkeypatch):
    forward, sizes = ClassifierScorer._forward, []

    def tight(self, texts, rows):
        sizes.append(len(rows))
        if len(rows) > 2:
            raise RuntimeError("CUDA out of memory")
        return forward(self, texts, rows)

    expected = ask(nli, SINGLES[:1] * 8)
    monkeypatch.setattr(ClassifierScorer, "_forward", tight)
    assert [a.probabilities for a in ask(nli, SINGLES[:1] * 8)] == [
        pytest.approx(a.probabilities, abs=1e-5) for a in expected
    ]
    assert sizes == [8, 4, 2, 2, 2, 2]


def test_budget_bounds_the_tokens_of_a_pass(nli, monkeypatch):
    forward, passes = ClassifierScorer._forward, []

    def watched(self, texts, rows):
        passes.append([len(texts[row].ids) for row in rows])
        return forward(self, texts, rows)

    monkeypatch.setattr(ClassifierScorer, "_forward", watched)
    ask(nli, SINGLES * 5, token_budget=60)
    assert max(map(sum, passes)) <= 60 and max(map(len, passes)) > 1
    assert all(len(set(lengths)) == 1 for lengths in passes)


def test_one_text_beyond_memory_leaves_the_others(nli, monkeypatch):
    forward = ClassifierScorer._forward

    def tight(self, texts, rows):
        if len(texts[rows[0]].ids) > 30:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return forward(self, texts, rows)

    monkeypatch.setattr(ClassifierScorer, "_forward", tight)
    long = Classify(text="lazy boys " * 20)
    answers = ask(nli, [SINGLES[2], long, SINGLES[2]])
    assert [type(answer) for answer in answers] == [Classification, PermanentError, Classification]
    assert answers[1].code == "request.memory"
