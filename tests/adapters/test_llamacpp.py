from __future__ import annotations

import asyncio
import importlib
import math
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prejudge.core.errors import MissingExtraError, ModelError, ModelLoadError, PermanentError
from prejudge.core.records import (
    AnyResponse,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    Message,
    Sampling,
    Text,
)

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")

from prejudge.adapters._llamacpp_sampling import draw, log_softmax
from prejudge.adapters._llamacpp_split import first_scored
from prejudge.adapters.llamacpp import LlamaCpp, LlamaCppOptions

from .gguf_files import CONTEXT, write_pair, write_sentencepiece

FRANCE = "The capital of France is"
CONTINUATIONS = (" Paris", " unbelievably friendly", "n't", " Par", " Rome, one two three")
Pair = tuple[Path, Path]


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return write_pair(tmp_path_factory.mktemp("gguf"))


@pytest.fixture(scope="session")
def plain_pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return write_pair(tmp_path_factory.mktemp("gguf-plain"), template=None, add_bos=False)


@pytest.fixture(scope="session")
def spm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentencepiece(tmp_path_factory.mktemp("gguf-spm"))


def ask(file: Path, requests: Sequence[Any], **options: Any) -> list[Any]:
    async def once() -> list[AnyResponse | ModelError]:
        adapter = LlamaCpp(LlamaCppOptions(model=str(file), **{"threads": 1, **options}))
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    return asyncio.run(once())


def say(*texts: str, **sampling: Any) -> Generate:
    roles = ("user", "assistant") * len(texts)
    messages = tuple(Message(role, (Text(text),)) for role, text in zip(roles, texts, strict=False))  # type: ignore[arg-type]
    return Generate(messages=messages, sampling=Sampling(**{"max_tokens": 12, **sampling}))


def values(answer: Likelihoods) -> list[tuple[float, ...]]:
    return [score.values for score in answer.scores]


def expected(checkpoint: Path, prompt: str, continuation: str) -> list[float]:
    """Score by Transformers, one plain forward pass."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForCausalLM.from_pretrained(checkpoint).eval()
    encoded = tokenizer(prompt + continuation, return_offsets_mapping=True, return_tensors="pt")
    ids = encoded.input_ids[0]
    with torch.no_grad():
        rows = model(encoded.input_ids).logits[0].double().log_softmax(-1)
    scored = [number for number, (_, end) in enumerate(encoded.offset_mapping[0].tolist()) if end > len(prompt)]
    return [rows[number - 1, ids[number]].item() for number in scored]


@pytest.mark.parametrize("continuation", CONTINUATIONS)
def test_likelihood_equals_transformers(pair: Pair, continuation: str) -> None:
    (answer,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=(continuation,))])
    assert values(answer)[0] == pytest.approx(expected(pair[1], FRANCE, continuation), abs=1e-4)


def test_long_continuation_equals_transformers(pair: Pair) -> None:
    long = " and the capital of Italy is Rome, and one two three" * 12
    (answer,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=(long,))])
    assert answer.scores[0].count > 128
    assert values(answer)[0] == pytest.approx(expected(pair[1], FRANCE, long), abs=2e-5)


def test_float16_cache_is_near(pair: Pair) -> None:
    requests = [Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)]
    (fine,), (coarse,) = ask(pair[0], requests), ask(pair[0], requests, cache_dtype="float16")
    assert fine != coarse
    for one, other in zip(values(fine), values(coarse), strict=True):
        assert one == pytest.approx(other, abs=5e-3)


def test_likelihood_agrees_with_hf_causal(pair: Pair) -> None:
    try:
        causal = importlib.import_module("prejudge.adapters.hf_causal")
    except ModuleNotFoundError:
        pytest.skip("there is no adapter hf-causal")
    request = Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)

    async def theirs() -> Likelihoods:
        adapter = causal.HFCausal(causal.HFCausalOptions(model=str(pair[1]), device="cpu"))
        try:
            return await adapter.likelihood(request)
        finally:
            await adapter.aclose()

    for ours, other in zip(values(ask(pair[0], [request])[0]), values(asyncio.run(theirs())), strict=True):
        assert ours == pytest.approx(other, abs=1e-3)


def test_together_equals_alone(pair: Pair) -> None:
    (together,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)])
    alone = [ask(pair[0], [Likelihood(prompt=FRANCE, continuations=(one,))])[0] for one in CONTINUATIONS]
    for one, other in zip(values(together), alone, strict=True):
        assert one == pytest.approx(values(other)[0], abs=1e-5)


def test_log_probability_is_sum(pair: Pair) -> None:
    (answer,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)])
    assert all(score.log_probability == math.fsum(score.values) for score in answer.scores)


def test_token_across_border_is_scored(pair: Pair) -> None:
    # " Paris" is one token, and so the space counts to the continuation.
    (split,) = ask(pair[0], [Likelihood(prompt=f"{FRANCE} ", continuations=("Paris",))])
    (whole,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=(" Paris",))])
    assert split.scores == whole.scores


def test_continuations_without_common_token(plain_pair: Pair) -> None:
    # "T" and "h" merge to "Th" with the second continuation only; without a first token nothing is shared.
    (both,) = ask(plain_pair[0], [Likelihood(prompt="T", continuations=("x", "he capital"))])
    alone = [ask(plain_pair[0], [Likelihood(prompt="T", continuations=(one,))])[0] for one in ("x", "he capital")]
    assert values(both) == [values(one)[0] for one in alone]


def test_sentencepiece_border_is_found(spm: Path) -> None:
    continuations = (" Paris", " friendly", "ly", " 日", "\n")
    (answer,) = ask(spm, [Likelihood(prompt="The capital is", continuations=continuations)])
    assert [score.count for score in answer.scores] == [1, 2, 1, 4, 1]


def test_sentencepiece_straddling_token_is_scored(spm: Path) -> None:
    split, whole = ask(
        spm,
        [
            Likelihood(prompt="The capital ", continuations=("is",)),
            Likelihood(prompt="The capital", continuations=(" is",)),
        ],
    )
    assert split == whole


def test_text_without_prompt_is_scored(spm: Path, plain_pair: Pair) -> None:
    (answer,), (other,) = (ask(file, [Likelihood(prompt="", continuations=("The",))]) for file in (spm, plain_pair[0]))
    assert [answer.scores[0].count, other.scores[0].count] == [1, 1]


def test_characters_of_many_bytes_are_scored(pair: Pair) -> None:
    (answer,) = ask(pair[0], [Likelihood(prompt="naïve ", continuations=("日本",))])
    assert values(answer)[0] == pytest.approx(expected(pair[1], "naïve ", "日本"), abs=1e-4)


def test_order_changes_nothing(pair: Pair) -> None:
    prompts = [FRANCE, FRANCE + " Paris, and the capital of Italy is" * 12, "He didn't know", FRANCE * 9]
    requests = [Likelihood(prompt=prompt, continuations=CONTINUATIONS) for prompt in prompts]
    forth, back = ask(pair[0], requests), ask(pair[0], requests[::-1])
    assert forth == back[::-1]
    assert forth == [ask(pair[0], [request])[0] for request in requests]


def test_generation_does_not_depend_on_order(pair: Pair) -> None:
    requests = [say(text, seed=3, temperature=1.0) for text in ("one", "two " * 70, "two " * 71, "three")]
    assert ask(pair[0], requests) == ask(pair[0], requests[::-1])[::-1]


def test_greedy_equals_transformers(pair: Pair) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (answer,) = ask(pair[0], [say("one two", temperature=0.0)])
    tokenizer = AutoTokenizer.from_pretrained(pair[1])
    model = AutoModelForCausalLM.from_pretrained(pair[1]).eval()
    chat = [{"role": "user", "content": "one two"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False).input_ids
    with torch.no_grad():
        for _ in range(12):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    # A character that the end cuts in two is left out.
    assert answer.text.rstrip("\ufffd") == tokenizer.decode(ids[-12:]).rstrip("\ufffd")
    assert answer.usage.input_tokens == len(ids) - 12


def test_seed_is_honoured(pair: Pair) -> None:
    same = [say("one", seed=1, temperature=1.0)] * 2
    other = say("one", seed=2, temperature=1.0)
    one, again, two = ask(pair[0], [*same, other])
    assert one == again
    assert one.text != two.text


@pytest.mark.parametrize("change", [{"sample": 1}, {"attempt": 1}])
@pytest.mark.parametrize("seed", [None, 5])
def test_repeats_are_draws_of_their_own(pair: Pair, change: dict[str, int], seed: int | None) -> None:
    import msgspec

    first = say("one", seed=seed, temperature=1.0)
    one, two = ask(pair[0], [first, msgspec.structs.replace(first, **change)])
    assert one.text != two.text


def test_draws_follow_the_distribution(pair: Pair) -> None:
    one = say("one", max_tokens=1)
    requests = [Generate(messages=one.messages, sampling=one.sampling, sample=n, top_logprobs=90) for n in range(400)]
    draws: list[Generation] = ask(pair[0], requests)
    # A token that is part of a character has no text of its own to be counted by.
    top = next(top for top in draws[0].top_logprobs[0] if top.token.isascii())
    share = sum(answer.text == top.token for answer in draws) / len(draws)
    chance = math.exp(top.log_probability)
    assert share == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / len(draws)))


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.75), (0.5, 0.9), (2.0, 0.634)])
def test_temperature_sharpens_the_draw(temperature: float, share: float) -> None:
    row = log_softmax(np.log(np.array([0.25, 0.75])))
    sampling = Sampling(temperature=temperature)
    assert [draw(row, sampling, share - 0.01), draw(row, sampling, share + 0.01)] == [1, 0]


def test_top_p_keeps_the_likeliest() -> None:
    row = log_softmax(np.log(np.array([0.2, 0.5, 0.3])))
    assert {draw(row, Sampling(top_p=0.6), point / 100) for point in range(100)} == {1, 2}


def test_small_top_p_is_greedy(pair: Pair) -> None:
    narrow, greedy = ask(pair[0], [say("one", top_p=1e-9, temperature=1.0), say("one", temperature=0.0)])
    assert narrow.text == greedy.text


def test_stop_cuts_the_text(pair: Pair) -> None:
    (whole,) = ask(pair[0], [say("one two", temperature=0.0)])
    stop = whole.text[3:5]
    (cut,) = ask(pair[0], [say("one two", temperature=0.0, stop=(stop, "never"))])
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish_reason == "stop"


def test_refusal_keeps_its_text(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prejudge.adapters._llamacpp_answers.reads_as_refusal", lambda text: True)
    request = say("one two", temperature=0.0)
    (refused,), (kept,) = ask(pair[0], [request]), ask(pair[0], [request], refusal_rule=False)
    assert (refused.status, kept.status) == ("refused", "ok")
    assert refused.text == kept.text


def test_cancelling_stops_the_work(pair: Pair) -> None:
    async def cancel() -> float:
        adapter = LlamaCpp(LlamaCppOptions(model=str(pair[0]), threads=1))
        await adapter.answer([say("one", max_tokens=1)])
        task = asyncio.create_task(adapter.answer([say("one", max_tokens=450)] * 50))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        task.cancel()
        start = time.perf_counter()
        await adapter.answer([say("one", max_tokens=1)])
        waited = time.perf_counter() - start
        await adapter.aclose()
        return waited

    # Fifty answers of 450 tokens take far longer.
    assert asyncio.run(cancel()) < 1.0


def test_length_is_reported(pair: Pair) -> None:
    (answer,) = ask(pair[0], [say("one two", temperature=0.0, max_tokens=4)])
    assert (answer.finish_reason, answer.usage.output_tokens) == ("length", 4)


def test_top_logprobs_are_sorted(pair: Pair) -> None:
    request = Generate(messages=say("one").messages, sampling=Sampling(max_tokens=3, temperature=0.0), top_logprobs=4)
    (answer,) = ask(pair[0], [request])
    assert [len(row) for row in answer.top_logprobs] == [4, 4, 4]
    for row in answer.top_logprobs:
        assert sorted(row, key=lambda top: -top.log_probability) == list(row)


def test_n_ctx_changes_no_answer(pair: Pair) -> None:
    requests = [Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)]
    assert ask(pair[0], requests, n_ctx=64) == ask(pair[0], requests, n_ctx=400)


def test_chat_prompt_is_scored_in_its_template(pair: Pair) -> None:
    messages = say("one").messages
    text = "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n"
    chat, plain = ask(
        pair[0], [Likelihood(prompt=p, continuations=("two",)) for p in (messages, text)], chat_format="file"
    )
    # The template writes no begin-of-text; a plain prompt gets one.
    assert plain.usage.input_tokens == chat.usage.input_tokens + 1


def test_builtin_format_equals_file_template(pair: Pair) -> None:
    request = say("one two", temperature=0.0)
    (file,), (builtin,) = ask(pair[0], [request]), ask(pair[0], [request], chat_format="chatml")
    assert builtin.usage.input_tokens == file.usage.input_tokens + 1


def test_plain_join_without_template(plain_pair: Pair) -> None:
    chat, text = ask(
        plain_pair[0],
        [
            Likelihood(prompt=say("one", "two").messages, continuations=(" three",)),
            Likelihood(prompt="one\n\ntwo", continuations=(" three",)),
        ],
    )
    assert chat == text


def test_system_prompt_goes_first(pair: Pair) -> None:
    prompted = ask(pair[0], [say("one", temperature=0.0)], system_prompt="two")
    system = (Message("system", (Text("two"),)), *say("one").messages)
    spelled = ask(pair[0], [Generate(messages=system, sampling=Sampling(max_tokens=12, temperature=0.0))])
    assert prompted == spelled


def test_assistant_turn_is_continued(pair: Pair) -> None:
    text = "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\ntwo"
    (answer,) = ask(pair[0], [say("one", "two", temperature=0.0)])
    (spelled,) = ask(pair[0], [Likelihood(prompt=text, continuations=(" three",))])
    # The spelled-out text has a begin-of-text more.
    assert answer.usage.input_tokens == spelled.usage.input_tokens - spelled.scores[0].count - 1


def test_errors_stand_in_their_place(pair: Pair) -> None:
    long = Likelihood(prompt="one " * 600, continuations=(" two",))
    good = Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)
    empty = Likelihood(prompt=FRANCE, continuations=("",))
    first, second, third, fourth = ask(pair[0], [good, long, empty, good])
    assert isinstance(second, PermanentError) and f"opened for {CONTEXT}" in str(second)
    assert isinstance(third, PermanentError) and "empty" in str(third)
    assert first == fourth


def test_answer_without_room_is_refused(pair: Pair) -> None:
    (error,) = ask(pair[0], [say("one", max_tokens=60)], n_ctx=64)
    assert isinstance(error, PermanentError)
    assert "up to 60" in str(error)


def test_image_is_refused(pair: Pair) -> None:
    (error,) = ask(pair[0], [Generate(messages=(Message("user", (Image("ab" * 32), Text("one"))),))])
    assert isinstance(error, PermanentError)
    assert "image" in str(error)


def test_template_refusal_is_typed(tmp_path: Path) -> None:
    file, _ = write_pair(tmp_path, template="{{ raise_exception('roles must alternate') }}")
    (error,) = ask(file, [say("one")])
    assert isinstance(error, PermanentError)
    assert "roles must alternate" in str(error)


def test_unknown_chat_format_lists_the_known(pair: Pair) -> None:
    with pytest.raises(ModelLoadError, match="chatml"):
        ask(pair[0], [say("one")], chat_format="chatmI")


def test_file_format_needs_a_template(plain_pair: Pair) -> None:
    with pytest.raises(ModelLoadError, match="no chat template"):
        LlamaCpp(LlamaCppOptions(model=str(plain_pair[0]), chat_format="file"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "not there"),
        (lambda path: path.mkdir(), "a directory"),
        (lambda path: path.write_bytes(b"PK\x03\x04"), "no GGUF"),
        (lambda path: path.write_bytes(b""), "no GGUF"),
        (lambda path: path.write_bytes(b"GGUF\x03\x00"), "damaged"),
        (lambda path: path.write_bytes(b"GGUF\x00\x00\x00\x03" + bytes(16)), "version"),
    ],
)
def test_wrong_file_is_refused(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    make(tmp_path / "model.gguf")
    with pytest.raises(ModelLoadError, match=message):
        LlamaCpp(LlamaCppOptions(model=str(tmp_path / "model.gguf")))


def test_cut_weights_are_refused_at_load(pair: Pair, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(pair[0].read_bytes()[:-5000])
    with pytest.raises(ModelLoadError, match="llama.cpp cannot load"):
        ask(cut, [say("one")])


def test_identity_follows_the_bytes(pair: Pair, tmp_path: Path) -> None:
    copy = tmp_path / pair[0].name
    shutil.copy(pair[0], copy)
    same = LlamaCpp(LlamaCppOptions(model=str(copy), threads=1, n_ctx=99, n_gpu_layers=5, batch_items=3)).identity
    assert same == LlamaCpp(LlamaCppOptions(model=str(pair[0]))).identity
    copy.write_bytes(copy.read_bytes()[:-4] + b"\x00\x00\x80\x3f")
    assert LlamaCpp(LlamaCppOptions(model=str(copy))).identity.digest != same.digest
    assert same.settings["quantisation"] == "F32"


@pytest.mark.parametrize(
    "change",
    [
        {"chat_format": "plain"},
        {"system_prompt": "two"},
        {"cache_dtype": "float16"},
        {"flash_attention": True},
        {"max_tokens": 9},
        {"refusal_rule": False},
    ],
)
def test_identity_follows_settings(pair: Pair, change: dict[str, Any]) -> None:
    one, two = (LlamaCpp(LlamaCppOptions(model=str(pair[0]), **more)).identity for more in ({}, change))
    assert one != two


def test_identity_loads_no_library(pair: Pair) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from prejudge.adapters.llamacpp import *; "
        f"LlamaCpp(LlamaCppOptions(model={str(pair[0])!r})).identity; assert 'llama_cpp' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_package_names_the_extra(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prejudge.adapters.llamacpp.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"prejudge\[llamacpp\]"):
        LlamaCpp(LlamaCppOptions(model=str(pair[0])))


def test_console_stays_silent(pair: Pair, capfd: pytest.CaptureFixture[str]) -> None:
    ask(pair[0], [say("one")])
    assert capfd.readouterr() == ("", "")


def test_closed_adapter_says_so(pair: Pair) -> None:
    async def late() -> None:
        adapter = LlamaCpp(LlamaCppOptions(model=str(pair[0])))
        await adapter.aclose()
        await adapter.aclose()
        await adapter.answer([say("one")])

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(late())


def test_event_loop_keeps_turning(pair: Pair) -> None:
    async def count() -> int:
        adapter = LlamaCpp(LlamaCppOptions(model=str(pair[0]), threads=1))
        work = asyncio.create_task(adapter.answer([say("one", max_tokens=200)]))  # type: ignore[arg-type]
        turns = 0
        while not work.done():
            turns += 1
            await asyncio.sleep(0.001)
        await adapter.aclose()
        return turns

    assert asyncio.run(count()) > 5


@pytest.mark.parametrize(
    ("pieces", "context", "continuation", "first"),
    [
        ([b"a", b" b"], "a", " b", 1),
        ([b"a", b" b"], "a ", "b", 1),
        ([b" a", b" b"], "a", " b", 1),
        ([b" ", b"a", b"b"], "a", "b", 2),
        ([b"<s>", b" a", b"b"], "<s>a", "b", 2),
        ([b"a", b"\xc3", b"\xa9"], "a", "é", 1),
    ],
)
def test_border_is_found(pieces: list[bytes], context: str, continuation: str, first: int) -> None:
    assert first_scored(pieces, context.encode(), (context + continuation).encode()) == first


def test_lossy_tokenizer_is_refused() -> None:
    with pytest.raises(PermanentError, match="does not give"):
        first_scored([b"a", b"<unk>"], b"a", b"ab")
