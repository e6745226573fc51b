from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import subprocess
import sys
import time

import pytest

from prejudge.adapters import _torch
from prejudge.adapters._classifier_scorer import ClassifierScorer
from prejudge.adapters.hf_classifier import HFClassifier, HFClassifierOptions
from prejudge.core.errors import MissingExtraError, ModelLoadError, PermanentError
from prejudge.core.records import Classification, Classify

NLI = ("neutral", "contradiction", "entailment")
TOXIC = ("insult", "threat", "obscene", "identity attack")
TEXTS = (
    "The dark-skinned woman was considered beautiful.",
    "He didn't know that unbelievable misunderstandings happened.",
    "Lazy boys.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
)
SINGLES = tuple(Classify(text=text) for text in TEXTS)
PAIRS = tuple(Classify(text=text, pair=other) for text, other in zip(TEXTS, reversed(TEXTS), strict=True))
PRINT = """
import sys, msgspec
from prejudge.adapters.hf_classifier import HFClassifier, HFClassifierOptions
adapter = HFClassifier(HFClassifierOptions(model=sys.argv[1]))
print(msgspec.json.encode([adapter.identity, "torch" in sys.modules, "transformers" in sys.modules]).decode())
"""


def build(folder, **options):
    return HFClassifier(HFClassifierOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options}))


def ask(folder, requests, **options):
    async def once():
        adapter = build(folder, **options)
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    return asyncio.run(once())


def naive(folder, request, activation="softmax"):
    """One plain forward pass of the checkpoint, by output number."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    texts = (request.text,) if request.pair is None else (request.text, request.pair)
    with torch.no_grad():
        logits = model(**tokenizer(*texts, return_tensors="pt")).logits[0]
    return (logits.softmax(-1) if activation == "softmax" else logits.sigmoid()).tolist()


def change(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.fixture(scope="session")
def nli(tiny_nli):
    return tiny_nli("bert")


@pytest.fixture(scope="session")
def toxic(make_classifier):
    return make_classifier(labels=TOXIC, problem_type="multi_label_classification")


@pytest.fixture
def copied(nli, tmp_path):
    return shutil.copytree(nli, tmp_path / nli.name)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra"])
@pytest.mark.parametrize("requests", [SINGLES, PAIRS], ids=["single", "pair"])
def test_probabilities_equal_plain_forward_pass(family, requests, tiny_nli):
    for request, answer in zip(requests, ask(tiny_nli(family), requests), strict=True):
        expected = dict(zip(NLI, naive(tiny_nli(family), request), strict=True))
        assert answer.probabilities == pytest.approx(expected, abs=1e-5)


def test_labels_follow_configuration_in_order(nli, copied):
    (before,) = ask(nli, SINGLES[:1])
    change(copied, id2label={"2": "c", "0": "a", "1": "b"}, label2id={"a": 0, "b": 1, "c": 2})
    (after,) = ask(copied, SINGLES[:1])
    assert list(before.probabilities) == list(NLI)
    assert list(after.probabilities) == ["a", "b", "c"]
    assert list(after.probabilities.values()) == list(before.probabilities.values())


def test_generic_labels_are_kept(make_classifier):
    (answer,) = ask(make_classifier(num_labels=3), SINGLES[:1])
    assert list(answer.probabilities) == ["LABEL_0", "LABEL_1", "LABEL_2"]


def test_two_unnamed_labels_are_generic(copied, make_classifier):
    folder = make_classifier()
    assert "id2label" not in json.loads((folder / "config.json").read_text())
    (answer,) = ask(folder, SINGLES[:1])
    assert list(answer.probabilities) == ["LABEL_0", "LABEL_1"]


def test_softmax_sums_to_one(nli):
    for answer in ask(nli, SINGLES + PAIRS):
        assert sum(answer.probabilities.values()) == pytest.approx(1, abs=1e-12)


def test_multi_label_takes_sigmoids(toxic):
    for request, answer in zip(SINGLES, ask(toxic, SINGLES), strict=True):
        expected = naive(toxic, request, "sigmoid")
        assert answer.probabilities == pytest.approx(dict(zip(TOXIC, expected, strict=True)), abs=1e-5)
        assert sum(answer.probabilities.values()) != pytest.approx(1, abs=0.01)


def test_multi_label_can_be_set(toxic, nli):
    assert build(toxic).identity.settings["activation"] == "sigmoid"
    assert build(nli).identity.settings["activation"] == "softmax"
    assert build(toxic, multi_label=False).identity.settings["activation"] == "softmax"
    (answer,) = ask(nli, SINGLES[:1], multi_label=True)
    assert list(answer.probabilities.values()) == pytest.approx(naive(nli, SINGLES[0], "sigmoid"), abs=1e-5)


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
    assert isinstance(two, PermanentError) and "type 1" in str(two)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_answer_is_independent_of_batch(family, tiny_nli):
    requests = [*SINGLES, *PAIRS, *SINGLES]
    together = ask(tiny_nli(family), requests, token_budget=100)
    for request, answer in zip(requests, together, strict=True):
        (alone,) = ask(tiny_nli(family), [request], token_budget=1)
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
    assert f"at most {most}" in str(long) and "truncate = true" in str(long)
    assert before == after


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
    assert isinstance(answer, PermanentError) and "not finite" in str(answer)


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
    assert "memory" in str(answers[1])


def test_identity_is_stable_and_needs_no_torch(nli):
    done = subprocess.run([sys.executable, "-c", PRINT, str(nli)], capture_output=True, text=True, check=True)
    there, torch, transformers = json.loads(done.stdout)
    own = build(nli).identity
    assert (there["model"], there["digest"], there["settings"]) == (own.model, own.digest, own.settings)
    assert not torch and not transformers


def test_identity_ignores_place_device_and_batch(nli, copied):
    assert build(copied, device="cuda", token_budget=17, batch_items=3).identity == build(nli).identity


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_identity_follows_files(name, copied):
    before = build(copied).identity
    with (copied / name).open("ab") as file:
        file.write(b" ")
    assert build(copied).identity.digest != before.digest


def test_identity_follows_dtype(nli):
    assert build(nli, dtype="bfloat16").identity != build(nli).identity


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "LlamaForCausalLM", "BertModel", "BertForTokenClassification"])
def test_other_kind_of_model_is_named(kind, copied):
    change(copied, architectures=[kind])
    with pytest.raises(ModelLoadError, match=f"no text classifier: {kind}"):
        build(copied)


def test_own_code_needs_trust(copied):
    change(copied, auto_map={"AutoModelForSequenceClassification": "modeling.Own"})
    with pytest.raises(ModelLoadError, match="trust_remote_code = true"):
        build(copied)
    assert build(copied, trust_remote_code=True).identity.settings["trust_remote_code"] is True


def test_missing_head_is_an_error(copied):
    from transformers import AutoModel

    AutoModel.from_pretrained(copied).save_pretrained(copied)
    change(copied, architectures=["BertForSequenceClassification"])
    with pytest.raises(ModelLoadError, match="lack classifier"):
        ask(copied, SINGLES[:1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id2label": {"0": "yes", "1": "no", "2": "yes"}}, "two outputs 'yes'"),
        ({"id2label": {"1": "yes", "2": "no"}}, "not 0 to n"),
        ({"id2label": {"one": "yes"}}, "does not map numbers"),
        ({"id2label": ["yes", "no"]}, "does not map numbers"),
        ({"id2label": {}}, "not 0 to n"),
        ({"id2label": {"0": "score"}}, "one output"),
        ({"problem_type": "regression"}, "regression"),
    ],
)
def test_unusable_outputs_are_refused(fields, message, copied):
    change(copied, **fields)
    with pytest.raises(ModelLoadError, match=message):
        build(copied)


def test_single_output_is_read_when_asked(make_classifier):
    folder = make_classifier(labels=("toxic",))
    with pytest.raises(ModelLoadError, match="multi_label = true"):
        build(folder)
    (answer,) = ask(folder, SINGLES[:1], multi_label=True)
    assert answer.probabilities == pytest.approx({"toxic": naive(folder, SINGLES[0], "sigmoid")[0]}, abs=1e-5)


def test_missing_extra_names_pip_line(nli, monkeypatch):
    monkeypatch.setattr(_torch, "find_spec", lambda name: None if name == "torch" else importlib.util.find_spec(name))
    with pytest.raises(MissingExtraError, match=r"pip install 'prejudge\[hf\]'"):
        build(nli)


def test_unknown_device_is_refused(nli):
    with pytest.raises(ModelLoadError, match="abacus"):
        ask(nli, SINGLES[:1], device="abacus")


def test_loading_prints_nothing(nli, capfd):
    ask(nli, SINGLES)
    assert capfd.readouterr() == ("", "")


def test_cancelled_batch_stops_early(nli, monkeypatch):
    forward, passes = ClassifierScorer._forward, []

    def slow(self, texts, rows):
        passes.append(len(rows))
        time.sleep(0.02)
        return forward(self, texts, rows)

    async def cancel() -> bool:
        adapter = build(nli, token_budget=1)
        await adapter.answer(SINGLES[:1])
        monkeypatch.setattr(ClassifierScorer, "_forward", slow)
        work = asyncio.ensure_future(adapter.answer(SINGLES * 250))
        await asyncio.sleep(0.5)
        work.cancel()
        await adapter.aclose()
        return work.cancelled()

    assert asyncio.run(cancel())
    assert len(passes) < 500


def test_slow_batch_leaves_loop_free(nli):
    async def watch() -> list[float]:
        adapter = build(nli, token_budget=20)
        await adapter.answer(SINGLES[:1])
        work = asyncio.ensure_future(adapter.answer(SINGLES * 50))
        gaps, last = [], time.perf_counter()
        while not work.done():
            await asyncio.sleep(0.005)
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()
        await adapter.aclose()
        return gaps

    gaps = asyncio.run(watch())
    assert len(gaps) > 5
    assert sorted(gaps)[len(gaps) // 2] < sum(gaps) / 4


def test_closed_adapter_answers_nothing(nli):
    async def late():
        adapter = build(nli)
        await adapter.aclose()
        await adapter.aclose()
        await adapter.classify(SINGLES[0])

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(late())
