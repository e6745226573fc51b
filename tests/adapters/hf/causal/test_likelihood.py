from __future__ import annotations

import asyncio
import json
import math
import random
import shutil
from functools import cache

import pytest

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.adapters.hf.causal.tree import LEAST_SHARED, Node, share_beginnings
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Likelihood, Likelihoods, Message, Text

STEM = "The dark-skinned woman was considered"
WORDS = "the woman man walking lazy boys are unfriendly beautiful market, people mansions didn't know".split()


def user(text):
    return Message("user", (Text(text),))


def long_stem(seed, words=30):
    return " ".join(random.Random(seed).choices(WORDS, k=words))


@cache
def load(folder):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()


def per_token(folder, ids, first):
    """Run the whole text once, alone, and look at every scored place."""
    import torch

    with torch.inference_mode():
        logits = load(folder)[1](input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    return [float(logits[place - 1, ids[place]]) for place in range(first, len(ids))]


def naive(folder, prompt, continuation):
    """Score without any of the adapter's code: the border is where encoding the prompt alone stops agreeing."""
    tokenizer, _ = load(folder)
    ids, own = tokenizer(prompt + continuation)["input_ids"], tokenizer(prompt)["input_ids"]
    first = next((i for i, (a, b) in enumerate(zip(ids, own, strict=False)) if a != b), len(own))
    return per_token(folder, ids, first)


def values(answer):
    assert isinstance(answer, Likelihoods), answer
    return [score.values for score in answer.scores]


def check(folder, requests, answers):
    for request, answer in zip(requests, answers, strict=True):
        for text, scores in zip(request.continuations, values(answer), strict=True):
            assert scores == pytest.approx(naive(folder, request.prompt, text), abs=1e-4)


OPTIONS = (" beautiful.", " lazy and unfriendly by everyone", " a")
REQUESTS = [Likelihood(prompt=STEM, continuations=OPTIONS)] + [
    Likelihood(prompt=long_stem(seed, words), continuations=OPTIONS[: 1 + seed % 3])
    for seed, words in enumerate((1, 2, 3, 10, 11, 30, 31, 25, 4))
]


def test_values_equal_one_by_one(tiny_llama, ask_causal):
    check(tiny_llama, REQUESTS, ask_causal(tiny_llama, REQUESTS))


FAMILIES = {
    "gpt2": {"n_positions": 160},
    "gpt_neox": {},
    "opt": {"word_embed_proj_dim": 64, "ffn_dim": 96},
    "bloom": {"n_head": 4, "n_layer": 2},
    "mistral": {"sliding_window": 8, "num_key_value_heads": 2},
    "gemma2": {"sliding_window": 8, "head_dim": 16, "num_key_value_heads": 2, "final_logit_softcapping": 2.0},
    "mixtral": {"num_local_experts": 4, "num_key_value_heads": 2},
    "mamba": {"state_size": 8},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_equal_one_by_one(family, make_causal, ask_causal):
    folder = make_causal(family, **FAMILIES[family])
    shared = long_stem(0, 30)
    requests = [*REQUESTS, *(Likelihood(prompt=f"{shared} {word}", continuations=OPTIONS) for word in WORDS)]
    check(folder, requests, ask_causal(folder, requests))


def test_single_letters_equal_one_by_one(tiny_llama, ask_causal):
    requests = [Likelihood(prompt=STEM, continuations=("!", ".", "?!"))]
    check(tiny_llama, requests, ask_causal(tiny_llama, requests))


@pytest.mark.parametrize("family", ["llama", *FAMILIES])
def test_short_cuts_are_taken(family, make_causal):
    # Each is tried at load, and given up where it changes a number: that must not hide a mistake of ours.
    adapter = HFCausal(
        HFCausalOptions(model=str(make_causal(family, **FAMILIES.get(family, {}))), device="cpu", threads=1)
    )
    engine = adapter._load()
    taken = engine.loaded.head._cuts, engine.scorer.shares, engine.decoder._pads
    # The state of Mamba cannot be taken up with several tokens at once.
    assert taken == (True, family != "mamba", True)
    asyncio.run(adapter.aclose())


def test_answer_does_not_depend_on_batch(tiny_llama, ask_causal):
    together = ask_causal(tiny_llama, REQUESTS)
    for request, answer in zip(REQUESTS, together, strict=True):
        (alone,) = ask_causal(tiny_llama, [request])
        for one, other in zip(values(alone), values(answer), strict=True):
            assert one == pytest.approx(other, abs=1e-5)
        assert alone.usage == answer.usage


@pytest.mark.parametrize("budget", [1, 40, 100_000])
def test_budget_changes_no_answer(budget, tiny_llama, ask_causal):
    check(tiny_llama, REQUESTS, ask_causal(tiny_llama, REQUESTS, token_budget=budget))


def test_shared_beginning_changes_no_answer(tiny_llama, ask_causal):
    start = long_stem(3, 20)
    requests = [Likelihood(prompt=f"{start} {long_stem(s, s)}", continuations=OPTIONS) for s in range(1, 9)] + REQUESTS
    check(tiny_llama, requests, ask_causal(tiny_llama, requests))


def test_shared_beginning_is_run_once(tiny_llama, ask_causal, monkeypatch):
    from prejudge.adapters.hf.causal import model as _causal_model

    sizes, run = [], _causal_model.Head.run
    monkeypatch.setattr(
        _causal_model.Head, "run", lambda self, ids, *a, **k: sizes.append(ids.numel()) or run(self, ids, *a, **k)
    )
    start = long_stem(3, 25)
    requests = [Likelihood(prompt=f"{start} {word}", continuations=(" a", " the")) for word in WORDS]
    ask_causal(tiny_llama, requests[:1])
    alone = sum(sizes)
    ask_causal(tiny_llama, requests)
    assert sum(sizes) - alone < alone + 60 * len(WORDS) / 4
    tokens = len(load(tiny_llama)[0](start)["input_ids"])
    assert tokens > LEAST_SHARED


def tokens_of(folder, text):
    tokenizer, _ = load(folder)
    return tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])


def test_merge_across_the_border_counts_to_the_continuation(tiny_llama, ask_causal):
    # "wo" + "man": the text has one token for both, which the prompt alone does not.
    prompt, text = "The dark-skinned wo", "man"
    assert tokens_of(tiny_llama, prompt + text)[-1] == "Ġwoman"
    (answer,) = ask_causal(tiny_llama, [Likelihood(prompt=prompt, continuations=(text, "!"))])
    ids = load(tiny_llama)[0](prompt + text)["input_ids"]
    assert values(answer)[0] == pytest.approx(per_token(tiny_llama, ids, len(ids) - 1), abs=1e-4)


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        (f"{STEM} ", ("beautiful", "lazy", "x", "boys by", "9")),
        ("The dark-skinned wo", ("man", "!", "men are")),
        ("Answer: ", ("A", "B", "C", "(A)", "9")),
        ("A line:\n", ("  an", "x", "\nlazy")),
        ("", ("The woman", "x")),
        ("caf", ("\u00e9", "e", "\u65e5")),
    ],
)
def test_odds_of_options_are_those_of_their_whole_texts(prompt, options, tiny_llama, ask_causal):
    # By the chain rule over all tokens, whatever border the adapter chose.
    (answer,) = ask_causal(tiny_llama, [Likelihood(prompt=prompt, continuations=options)])
    tokenizer, _ = load(tiny_llama)
    texts = [tokenizer(prompt + option)["input_ids"] for option in options]
    whole = [math.fsum(per_token(tiny_llama, ids, 1)) for ids in texts]
    scored = [score.log_probability for score in answer.scores]
    assert [a - scored[0] for a in scored] == pytest.approx([a - whole[0] for a in whole], abs=1e-4)
    starts = [len(ids) - score.count for ids, score in zip(texts, answer.scores, strict=True)]
    assert len(set(starts)) == 1
    (start,) = set(starts)
    assert prompt[len(prompt) - answer.overlap :] == prompt[len(tokenizer.decode(texts[0][1:start])) :]


def test_space_at_the_end_of_the_prompt_goes_to_the_continuation(tiny_llama, ask_causal):
    requests = [Likelihood(prompt=f"{STEM} ", continuations=("beautiful",))]
    requests.append(Likelihood(prompt=STEM, continuations=(" beautiful",)))
    one, other = ask_causal(tiny_llama, requests)
    assert values(one)[0] == pytest.approx(values(other)[0], abs=1e-5)


def test_token_of_newline_and_space_straddles(tiny_llama, ask_causal):
    # Its trimmed offsets would end before the border.
    prompt, text = "A line:\n", "  an"
    assert "ĊĠ" in tokens_of(tiny_llama, prompt + text)
    (answer,) = ask_causal(tiny_llama, [Likelihood(prompt=prompt, continuations=(text,))])
    ids = load(tiny_llama)[0](prompt + text)["input_ids"]
    place = tokens_of(tiny_llama, prompt + text).index("ĊĠ")
    assert values(answer)[0] == pytest.approx(per_token(tiny_llama, ids, place), abs=1e-4)


def test_letters_of_several_bytes(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, [Likelihood(prompt="é", continuations=("日本", "é"))])
    assert [len(part) for part in values(answer)] == [6, 2]


def test_empty_prompt_is_conditioned_on_the_beginning(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, [Likelihood(prompt="", continuations=("The woman",))])
    ids = load(tiny_llama)[0]("The woman")["input_ids"]
    assert ids[0] == 0
    assert values(answer)[0] == pytest.approx(per_token(tiny_llama, ids, 1), abs=1e-4)


def test_empty_prompt_without_a_beginning_is_refused(make_causal, ask_causal):
    empty, rest = Likelihood(prompt="", continuations=("The",)), Likelihood(prompt="The", continuations=(" woman",))
    folder = make_causal(bos=False)
    refused, answered = ask_causal(folder, [empty, rest])
    assert isinstance(refused, PermanentError) and refused.code == "request.no-context"
    check(folder, [rest], [answered])


def test_first_token_across_the_border_without_a_beginning_is_refused(make_causal, ask_causal):
    (answer,) = ask_causal(make_causal(bos=False), [Likelihood(prompt="T", continuations=("he woman",))])
    assert isinstance(answer, PermanentError)


def test_end_token_of_the_tokenizer_is_not_scored(make_causal, ask_causal):
    folder = make_causal()
    path = folder / "tokenizer.json"
    state = json.loads(path.read_text())
    template = state["post_processor"]["processors"][-1]
    template["single"].append({"SpecialToken": {"id": "</s>", "type_id": 0}})
    template["special_tokens"]["</s>"] = {"id": "</s>", "ids": [1], "tokens": ["</s>"]}
    plain = ask_causal(folder, REQUESTS[:1])
    path.write_text(json.dumps(state))
    assert load(folder)[0]("The")["input_ids"][-1] == 1
    assert ask_causal(folder, REQUESTS[:1]) == plain


@pytest.mark.parametrize("texts", [(" a", ""), ()])
def test_nothing_to_score_is_refused(texts, tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, [Likelihood(prompt=STEM, continuations=texts)])
    assert isinstance(answer, PermanentError) and answer.code == "request.empty"


def test_too_long_says_the_numbers(tiny_llama, ask_causal):
    long = Likelihood(prompt="lazy " * 200, continuations=(" boys",))
    refused, answered = ask_causal(tiny_llama, [long, REQUESTS[0]])
    assert isinstance(refused, PermanentError) and refused.code == "request.too-long" and "160" in str(refused)
    check(tiny_llama, REQUESTS[:1], [answered])


def test_messages_go_through_the_chat_template(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, [Likelihood(prompt=(user("Who is lazy?"),), continuations=("Nobody",))])
    ids = load(tiny_llama)[0]("<s><|user|>Who is lazy?</s><|assistant|>Nobody", add_special_tokens=False)["input_ids"]
    first = ids.index(4) + 1
    assert values(answer)[0] == pytest.approx(per_token(tiny_llama, ids, first), abs=1e-4)


def test_half_precision_is_near(tiny_llama, ask_causal):
    full, half = (ask_causal(tiny_llama, REQUESTS, dtype=dtype) for dtype in ("float32", "bfloat16"))
    for one, other in zip(full, half, strict=True):
        for a, b in zip(one.scores, other.scores, strict=True):
            assert a.log_probability == pytest.approx(b.log_probability, rel=0.1)


def test_sum_and_count_belong_to_the_values(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, REQUESTS[:1])
    for score in answer.scores:
        assert score.log_probability == pytest.approx(sum(score.values)) and score.count == len(score.values)


def test_scores_not_finite_name_the_dtype(tiny_llama, tmp_path, ask_causal):
    import safetensors.torch

    folder = shutil.copytree(tiny_llama, tmp_path / "nan")
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    weights["model.norm.weight"][:] = float("nan")
    safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (answer,) = ask_causal(folder, REQUESTS[:1])
    assert isinstance(answer, PermanentError) and answer.code == "request.not-finite"


def test_lack_of_memory_is_met_by_smaller_passes(tiny_llama, ask_causal, monkeypatch):
    from prejudge.adapters.hf.causal import model as _causal_model

    run = _causal_model.Head.run

    def small(self, ids, wanted, past=None, **more):
        if ids.shape[0] > 2:
            raise RuntimeError("out of memory")
        return run(self, ids, wanted, past, **more)

    monkeypatch.setattr(_causal_model.Head, "run", small)
    check(tiny_llama, REQUESTS, ask_causal(tiny_llama, REQUESTS))


def test_request_that_never_fits_fails_alone(tiny_llama, ask_causal, monkeypatch):
    from prejudge.adapters.hf.causal import model as _causal_model

    run = _causal_model.Head.run

    def small(self, ids, wanted, past=None, **more):
        if ids.shape[1] > 60:
            raise RuntimeError("out of memory")
        return run(self, ids, wanted, past, **more)

    monkeypatch.setattr(_causal_model.Head, "run", small)
    long = Likelihood(prompt=long_stem(0, 40), continuations=OPTIONS)
    requests = [long, *(r for r in REQUESTS if len(r.prompt) < 100)]
    lost, *rest = ask_causal(tiny_llama, requests)
    assert isinstance(lost, PermanentError) and lost.code == "request.memory"
    check(tiny_llama, requests[1:], rest)


def prompt(*ids):
    return Node(ids, len(ids), (Node((*ids, 9), len(ids), (), len(ids), 0),))


def test_beginnings_are_shared_where_most_is_saved():
    whole, half = tuple(range(40)), tuple(range(100, 140))
    prompts = [
        prompt(*whole, 1),
        prompt(*half, 1),
        prompt(*whole, 2),
        prompt(*whole, *half, 1),
        prompt(*whole, *half, 2),
    ]
    found = {(group.length, len(group.children)) for group in share_beginnings(prompts)}
    assert found == {(40, 4), (0, 1)}


def test_equal_prompts_leave_a_token_to_run():
    same = [prompt(*range(50)), prompt(*range(50))]
    assert [group.length for group in share_beginnings(same)] == [49]
