"""A tiny real LLaVA, made here: every answer is compared with plain Transformers, one question at a time."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("PIL")

from prejudge.adapters.hf import refill
from prejudge.adapters.hf.vlm import adapter as hf_vlm
from prejudge.adapters.hf.vlm import cache as _vlm_cache
from prejudge.adapters.hf.vlm import prompt as vlm_prompt
from prejudge.adapters.hf.vlm.adapter import HFVLM, HFVLMOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.errors import MissingExtraError, ModelLoadError, PermanentError
from prejudge.core.contracts.installing import install_line
from prejudge.core.contracts.records import Generate, Likelihood, Message, Sampling, Text
from prejudge.core.pictures import checking as _checking
from prejudge.testing import raises_code

from ...llava_files import BLOBS, BLUE, GREEDY, QUESTIONS, RED, RED_NAME, about, greedy, look_up, make_llava
from ...pool import POOL


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vlm") / "tiny-llava"
    make_llava(folder)
    return folder


@pytest.fixture(scope="module")
def plain(llava: Path) -> Callable[..., Any]:
    """Return `run(text, data)`: inputs and model of plain Transformers."""
    from PIL import Image as Pictures
    from transformers import AutoModelForImageTextToText, AutoProcessor

    model = AutoModelForImageTextToText.from_pretrained(llava).eval()
    processor = AutoProcessor.from_pretrained(llava, backend="pil")

    def run(text: str, data: bytes) -> tuple[Any, Any, Any]:
        image = Pictures.open(io.BytesIO(data))
        inputs = processor(text=text, images=image, return_tensors="pt", add_special_tokens=False)
        return model, processor, inputs

    return run


def rendered(question: str) -> str:
    return f"<s>USER: <image>\n{question} ASSISTANT:"


def ask(folder: Path, requests: Sequence[Any], blobs: Any = look_up, **options: Any) -> list[Any]:
    chosen = HFVLMOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options})
    return POOL.ask(HFVLM, chosen, requests, Services(blobs=blobs))


def test_greedy_answers_equal_plain_generation(llava, plain):
    found = ask(llava, greedy())
    wanted = []
    for question in QUESTIONS:
        for data in (RED, BLUE):
            model, processor, inputs = plain(rendered(question), data)
            ids = model.generate(**inputs, max_new_tokens=9, do_sample=False)[0, inputs["input_ids"].shape[1] :]
            wanted.append(processor.tokenizer.decode(ids, skip_special_tokens=True))
    assert [answer.text for answer in found] == wanted


def test_likelihood_equals_plain_pass(llava, plain):
    (found,) = ask(llava, [Likelihood(prompt=about(QUESTIONS[1]), continuations=(" yes", " no person"))])
    for scores, continuation in zip(found.scores, (" yes", " no person"), strict=True):
        model, _, inputs = plain(rendered(QUESTIONS[1]) + continuation, RED)
        table = model(**inputs).logits[0].log_softmax(-1).detach()
        ids = inputs["input_ids"][0]
        start = plain(rendered(QUESTIONS[1]), RED)[2]["input_ids"].shape[1]
        wanted = [float(table[place - 1, ids[place]]) for place in range(start, len(ids))]
        assert scores.values == pytest.approx(wanted, abs=2e-4)
        assert scores.log_probability == pytest.approx(math.fsum(wanted), abs=1e-3)


def test_two_images_give_two_answers(llava):
    requests = [Likelihood(prompt=about("Who is it?", image), continuations=(" yes", " no")) for image in BLOBS]
    red, blue = ask(llava, requests)
    assert abs(red.scores[0].log_probability - blue.scores[0].log_probability) > 1e-3


def test_prefix_is_shared_on_llava(llava, monkeypatch):
    seen = []
    original = _vlm_cache.encode_stem
    monkeypatch.setattr(_vlm_cache, "encode_stem", lambda *given: seen.append(1) or original(*given))
    ask(llava, greedy())
    assert len(seen) == 2


def test_trial_rejects_wrong_sharing(llava, monkeypatch):
    import torch

    def blind(loaded: Any, owners: Any, rows: Any, begins: Any) -> Any:
        return torch.zeros(1, 1, len(rows), len(owners)).masked_fill(owners < 0, -1e9)

    wanted, seen = ask(llava, greedy()), []
    original = _vlm_cache.encode_stem
    monkeypatch.setattr(_vlm_cache, "_mask", blind)
    monkeypatch.setattr(_vlm_cache, "encode_stem", lambda *given: seen.append(1) or original(*given))
    assert ask(llava, greedy()) == wanted
    assert not seen


def test_plain_path_answers_alike(llava, monkeypatch):
    sampled = [msgspec.structs.replace(r, sampling=Sampling(temperature=1.0, max_tokens=6, seed=3)) for r in greedy()]
    requests = [*greedy(), *sampled]
    scored = [Likelihood(prompt=about(q), continuations=(" yes", " no person")) for q in QUESTIONS]
    shared, shared_scores = ask(llava, requests), ask(llava, scored)
    monkeypatch.setattr(hf_vlm, "try_sharing", lambda *_: "none")
    assert ask(llava, requests) == shared
    for one, other in zip(ask(llava, scored), shared_scores, strict=True):
        for scores, others in zip(one.scores, other.scores, strict=True):
            assert scores.values == pytest.approx(others.values, abs=2e-4)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_answers_are_free_of_batch(llava, temperature):
    how = Sampling(temperature=temperature, top_p=0.9, max_tokens=7, seed=5)
    requests = [msgspec.structs.replace(request, sampling=how, top_logprobs=0) for request in greedy()]
    together = ask(llava, requests)
    assert ask(llava, requests[::-1])[::-1] == together
    assert [ask(llava, [request])[0] for request in requests[:4]] == together[:4]
    assert ask(llava, requests, token_budget=60) == together


def test_draws_differ_by_seed_sample_and_attempt(llava):
    def drawn(seed: int = 1, **changes: int) -> Generate:
        how = Sampling(temperature=1.5, max_tokens=12, seed=seed)
        return Generate(messages=about(QUESTIONS[0]), sampling=how, **changes)

    texts = [a.text for a in ask(llava, [drawn(), drawn(), drawn(2), drawn(sample=1), drawn(attempt=1)])]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4


def test_draws_follow_probabilities(llava):
    how = Sampling(temperature=1.0, max_tokens=1)
    requests = [Generate(messages=about("Who is it?"), sampling=how, sample=n, top_logprobs=30) for n in range(400)]
    found = ask(llava, requests)
    # Bytes that are no character all look alike.
    top = next(top for top in found[0].top_logprobs[0] if top.token.isascii() and top.token.isalpha())
    share = sum(answer.text == top.token for answer in found) / 400
    expected = math.exp(top.log_probability)
    assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / 400)


def test_stop_string_cuts_answer(llava):
    (whole,) = ask(llava, [Generate(messages=about(QUESTIONS[0]), sampling=GREEDY)])
    stop = whole.text[3:5]
    how = msgspec.structs.replace(GREEDY, stop=(stop,))
    (cut,) = ask(llava, [Generate(messages=about(QUESTIONS[0]), sampling=how)])
    assert cut.text == whole.text[: whole.text.find(stop)]
    assert (whole.finish_reason, cut.finish_reason) == ("length", "stop")


def test_text_alone_is_answered(llava):
    message = (Message("system", (Text("Be brief."),)), Message("user", (Text("Who?"),)))
    (answer,) = ask(llava, [Generate(messages=message, sampling=GREEDY)])
    (scores,) = ask(llava, [Likelihood(prompt="Who is", continuations=(" it", " this person"))])
    assert answer.usage.output_tokens == 9
    assert [score.count > 0 for score in scores.scores] == [True, True]


def test_unreadable_image_is_permanent(llava):
    broken = {hashlib.sha256(data).hexdigest(): data for data in (b"not an image", RED[: len(RED) // 2])}
    requests = [Generate(messages=about("Who?", name), sampling=GREEDY) for name in (*broken, RED_NAME)]
    *errors, fine = ask(llava, requests, lambda name: {**BLOBS, **broken}[name])
    for name, error in zip(broken, errors, strict=True):
        assert isinstance(error, PermanentError)
        assert error.code == "request.image-damaged" and name in str(error)
    assert fine.text


def test_image_of_another_name_is_permanent(llava):
    (error,) = ask(llava, [Generate(messages=about("Who?"), sampling=GREEDY)], lambda name: BLUE)
    assert isinstance(error, PermanentError)
    assert error.code == "request.image-damaged" and RED_NAME in str(error)


def test_decompression_bomb_is_permanent(llava, monkeypatch):
    from PIL import Image as Pictures

    monkeypatch.setattr(Pictures, "MAX_IMAGE_PIXELS", 1000)
    (found,) = ask(llava, [Generate(messages=about("Who?"), sampling=GREEDY)])
    assert isinstance(found, PermanentError)
    assert found.code == "request.image-size" and RED_NAME in str(found) and "40 x 30" in str(found)


@pytest.mark.parametrize("blobs", [None, look_up])
def test_missing_image_is_permanent(llava, blobs):
    (error,) = ask(llava, [Generate(messages=about("Who?", "0" * 64), sampling=GREEDY)], blobs)
    assert isinstance(error, PermanentError)
    assert "0" * 64 in str(error)


def test_placeholder_in_text_is_refused(llava):
    (error,) = ask(llava, [Generate(messages=about("Who is <image>?"), sampling=GREEDY)])
    assert isinstance(error, PermanentError)
    assert error.code == "request.placeholder" and "<image>" in str(error)


def test_too_long_prompt_is_permanent(llava):
    found = ask(llava, [Generate(messages=about("Who? " * 200), sampling=GREEDY), *greedy(QUESTIONS[:1])])
    assert isinstance(found[0], PermanentError)
    assert found[0].code == "request.too-long" and "160" in str(found[0])
    assert found[1].text


def test_prompt_that_fills_the_context_is_too_long(llava):
    short = greedy(QUESTIONS[:1])[0]
    (first,) = ask(llava, [short])
    fits, full = (
        Generate(messages=(Message("user", (*short.messages[0].parts, Text("x" * more))),), sampling=GREEDY)
        for more in (159 - first.usage.input_tokens, 160 - first.usage.input_tokens)
    )
    one, none = ask(llava, [fits, full])
    assert (one.usage.input_tokens, one.usage.output_tokens) == (159, 1)
    assert isinstance(none, PermanentError) and none.code == "request.too-long"


def test_empty_continuation_is_permanent(llava):
    (error,) = ask(llava, [Likelihood(prompt=about("Who?"), continuations=("",))])
    assert isinstance(error, PermanentError)


@pytest.mark.parametrize(
    ("begun", "continuation"), [("Would you lend this per", "son"), ("Who is ", "it"), ("Who", "?")]
)
def test_shared_token_is_the_continuations(llava, plain, begun, continuation):
    messages = (*about("Who?"), Message("assistant", (Text(begun),)))
    (found,) = ask(llava, [Likelihood(prompt=messages, continuations=(continuation,))])
    model, processor, inputs = plain(f"<s>USER: <image>\nWho? ASSISTANT: {begun}{continuation}", RED)
    ids, table = inputs["input_ids"][0].tolist(), model(**inputs).logits[0].log_softmax(-1).detach()
    # From the end on, as many tokens as it takes to have all of the continuation.
    count = next(n for n in range(1, 9) if processor.tokenizer.decode(ids[-n:]).endswith(continuation))
    wanted = [float(table[place - 1, ids[place]]) for place in range(len(ids) - count, len(ids))]
    assert found.scores[0].values == pytest.approx(wanted, abs=2e-4)


def test_processor_that_changes_the_end_is_refused(llava, monkeypatch):
    original = vlm_prompt.encode
    monkeypatch.setattr(
        vlm_prompt, "encode", lambda *given, **how: (made := original(*given, **how))._replace(ids=(*made.ids, 1))
    )
    (error,) = ask(llava, [Likelihood(prompt=about("Who?"), continuations=(" yes",))])
    assert isinstance(error, PermanentError) and error.code == "request.border"


def test_options_are_scored_from_the_same_token_on(llava, plain):
    begun, options = "Who is ", ("it", "9", "not")
    messages = (*about("Who?"), Message("assistant", (Text(begun),)))
    (found,) = ask(llava, [Likelihood(prompt=messages, continuations=options)])
    whole = []
    for option in options:
        model, _, inputs = plain(f"<s>USER: <image>\nWho? ASSISTANT: {begun}{option}", RED)
        ids, table = inputs["input_ids"][0].tolist(), model(**inputs).logits[0].log_softmax(-1).detach()
        behind = max(place for place, token in enumerate(ids) if token == model.config.image_token_index) + 1
        whole.append(math.fsum(float(table[place - 1, ids[place]]) for place in range(behind + 1, len(ids))))
    scored = [score.log_probability for score in found.scores]
    assert [a - scored[0] for a in scored] == pytest.approx([a - whole[0] for a in whole], abs=1e-3)
    assert found.overlap == 1


def test_one_seed_draws_otherwise_for_each_prompt_and_image(llava, monkeypatch):
    seen, original = [], refill.pick
    monkeypatch.setattr(refill, "pick", lambda x, c, step: seen.extend(one.key for one in c) or original(x, c, step))
    how = Sampling(temperature=1.0, max_tokens=1, seed=3)
    ask(llava, [Generate(messages=about(q, image), sampling=how) for q in QUESTIONS for image in BLOBS])
    assert len(set(seen)) == len(seen) == 8


def test_identity_changes_with_processor(llava, tmp_path):
    import shutil

    copy = tmp_path / llava.name
    shutil.copytree(llava, copy)
    before = HFVLM(HFVLMOptions(model=str(copy))).identity
    assert before == HFVLM(HFVLMOptions(model=str(llava))).identity
    path = copy / "processor_config.json"
    path.write_text(path.read_text().replace("0.48145466", "0.5"))
    assert HFVLM(HFVLMOptions(model=str(copy))).identity.digest != before.digest


def test_model_without_template_is_refused(llava, tmp_path):
    import shutil

    copy = tmp_path / "bare"
    shutil.copytree(llava, copy)
    (copy / "chat_template.jinja").unlink()
    with raises_code(ModelLoadError, "model.template"):
        HFVLM(HFVLMOptions(model=str(copy)))


def test_masked_model_is_refused(tiny_bert):
    with raises_code(ModelLoadError, "model.kind"):
        HFVLM(HFVLMOptions(model=str(tiny_bert)))


def test_missing_pillow_names_extra(llava, monkeypatch):
    monkeypatch.setattr(_checking, "find_spec", lambda name: None)
    with raises_code(MissingExtraError, "missing-extra", install_line("vlm")):
        HFVLM(HFVLMOptions(model=str(llava)))


def test_memory_shortage_halves_batch(llava, monkeypatch):
    wanted, original, sizes = ask(llava, greedy()), _vlm_cache.Strip._run, []

    def scarce(self: Any, ids: Any, seen: Any, *given: Any, **more: Any) -> Any:
        sizes.append(len(set(seen[0].tolist())))
        if sizes[-1] > 1:
            raise RuntimeError("CUDA out of memory")
        return original(self, ids, seen, *given, **more)

    monkeypatch.setattr(hf_vlm, "try_sharing", lambda *_: "refilled")
    monkeypatch.setattr(_vlm_cache.Strip, "_run", scarce)
    assert ask(llava, greedy()) == wanted
    assert max(sizes) > 1


STARTS = {"auto": ["<s>"], "bos": ["<s>"], "eos": ["</s>"], "none": [], "red blue": ["red blue"]}


@pytest.mark.parametrize("start", STARTS)
def test_start_of_a_plain_text_is_a_setting(llava, start):
    """Opponent: a plain text was scored behind the tokenizer's first token, whatever the setting of other adapters."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    prompt, continuation = "what colour is", " red"
    (found,) = ask(llava, [Likelihood(prompt=prompt, continuations=(continuation,))], start=start)
    tokenizer = AutoProcessor.from_pretrained(llava, backend="pil").tokenizer
    before = [n for text in STARTS[start] for n in tokenizer(text, add_special_tokens=False).input_ids]
    whole = tokenizer(prompt + continuation, add_special_tokens=False).input_ids
    split = len(tokenizer(prompt, add_special_tokens=False).input_ids)
    model = AutoModelForImageTextToText.from_pretrained(llava).eval()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*before, *whole]])).logits[0].log_softmax(-1)
    expected = sum(
        float(logits[len(before) + at - 1, whole[at]]) for at in range(split, len(whole)) if len(before) + at
    )
    assert found.scores[0].log_probability == pytest.approx(expected, abs=1e-4)
    recorded = HFVLM(HFVLMOptions(model=str(llava), start=start)).identity.settings["start"]
    assert recorded == {"auto": "auto (<s>)", "bos": "bos (<s>)"}.get(start, start)


def test_text_with_nothing_before_it_has_no_likelihood(llava):
    (found,) = ask(llava, [Likelihood(prompt="", continuations=("red",))], start="none")
    assert isinstance(found, PermanentError) and found.code == "request.no-context"
