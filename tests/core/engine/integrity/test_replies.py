"""Names, limits and log-probabilities of single answers."""

from __future__ import annotations

import random
import struct

import msgspec
import pytest

from prejudge.core.contracts.adapter import Remark, RemoteEndpoint
from prejudge.core.contracts.records import (
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Message,
    Sampling,
    Text,
    TokenScores,
    TopToken,
    Usage,
)
from prejudge.core.engine.integrity.numbers import ENOUGH, Numbers
from prejudge.core.engine.integrity.records import Integrity, Sighting, add_up
from prejudge.core.engine.integrity.replies import Inspector, is_name_of

SAME = [
    ("gpt-4o", "gpt-4o-2024-08-06"),
    ("openai/gpt-4o", "gpt-4o-2024-08-06"),
    ("gpt-4o:free", "openai/gpt-4o"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet-20241022"),
    ("meta-llama/Llama-3-8B", "Llama-3-8B"),
    ("llama3", "llama3:latest"),
    ("models/gemini-1.5-pro", "gemini-1.5-pro-002"),
    ("qwen2.5-7b", "/models/Qwen2.5-7B-Q4_K_M.gguf"),
]
OTHER = [
    ("gpt-4o", "gpt-4o-mini-2024-07-18"),
    ("gpt-4", "gpt-4o"),
    ("gpt-4o", "gpt-4-0613"),
    ("gpt-4", "gpt-4-32k"),
    ("claude-3-5-sonnet", "claude-3-haiku-20240307"),
    ("llama-3-8b", "llama-3-70b"),
    ("my-deployment", "gpt-4o-2024-08-06"),
]


@pytest.mark.parametrize(("asked", "told"), SAME)
def test_version_or_vendors_name_is_the_same_model(asked, told):
    assert is_name_of(told, asked)


@pytest.mark.parametrize(("asked", "told"), OTHER)
def test_other_model_is_another(asked, told):
    assert not is_name_of(told, asked)


def names(*findings):
    return {one.name: one for one in findings}


def seen(values, each=10):
    """Return what is found in log-probabilities that come in answers of some size."""
    numbers = Numbers()
    for start in range(0, len(values), each):
        numbers.see(start.to_bytes(32, "big"), values[start : start + each])
    return names(*numbers.findings())


def honest(count=500, seed=0):
    numbers = random.Random(seed)
    return [-numbers.expovariate(0.5) - 1e-3 for _ in range(count)]


def as_float(value, kind="<f", keep=4):
    """Return a number as a shorter format of floating point holds it."""
    packed = struct.pack(kind, value)
    return struct.unpack(kind, packed[:0].ljust(len(packed) - keep, b"\0") + packed[len(packed) - keep :])[0]


def test_own_values_are_not_doubted():
    assert seen(honest()) == {} and seen([as_float(value) for value in honest()]) == {}
    assert seen([round(value, 4) for value in honest()]) == {}, "a fine step changes nothing"
    assert seen([0.0] * 500) == {}, "certain tokens"
    assert seen([round(value, 1) for value in honest(ENOUGH - 1)]) == {}, "too few to tell"


@pytest.mark.parametrize("step", [1.0, 0.25, 0.1, 0.01, 0.001])
def test_rounded_values_are_found(step):
    found = seen([round(value / step) * step - step for value in honest()])
    assert "rounded" in found and found["rounded"].key


@pytest.mark.parametrize(("values", "what"), [
    ([as_float(value, keep=2) for value in honest()], "bfloat16"),
    ([as_float(value, "<e", 2) for value in honest()], "float16"),
])  # fmt: skip
def test_values_of_a_short_format_are_found(values, what):
    assert what in seen(values)["rounded"].detail


def test_floors_and_limits_are_found():
    assert seen([*honest(), -9999.0])["clipped"].count == 1
    clipped = [max(value, -2.5) for value in honest()]
    found = seen(clipped)["clipped"]
    assert found.count == clipped.count(-2.5) and "-2.5" in found.detail
    assert "clipped" not in seen([*honest(), *[min(honest()) - 1] * 3]), "a value that comes thrice is no limit"


def ask(text, **fields):
    return Generate(messages=(Message("user", (Text(text),)),), **fields)


def answer(text="yes", read=9, wrote=3, **fields):
    return Generation(text=text, usage=Usage(input_tokens=read, output_tokens=wrote), **fields)


def looked(pairs, model="m", **expected):
    inspector = Inspector(model, RemoteEndpoint(name="e", **expected))
    for number, (request, response) in enumerate(pairs):
        inspector.look(number.to_bytes(32, "big"), request, response)
    return names(*inspector.result().findings)


def test_one_token_above_a_limit_is_let_pass():
    request = ask("q", sampling=Sampling(max_tokens=3))
    assert looked([(request, answer(wrote=4))]) == {}
    assert looked([(request, answer(wrote=5))])["max-tokens"].key == "00" * 32
    assert looked([(request, answer(wrote=5))], answer_room=2) == {}
    assert "max-tokens" in looked([(ask("q"), answer(wrote=50))], max_tokens=10)


def test_stop_text_in_a_refusal_is_no_finding():
    request = ask("q", sampling=Sampling(stop=("\n",)))
    assert looked([(request, answer("a\nb", status="refused"))]) == {}
    assert looked([(request, answer("a\nb"))])["stop"].count == 1


def test_long_prompts_of_honest_counts_are_not_cut_off():
    prompts = [ask("word " * count) for count in range(300, 900, 20)]
    assert looked([(one, answer(read=count)) for one, count in zip(prompts, range(300, 900, 20), strict=True)]) == {}
    assert "truncated" in looked([(one, answer(read=512)) for one in prompts])
    assert looked([(ask("word " * 300), answer(read=512))] * 5) == {}, "one prompt, asked again"


def ollama(tokens, context=4096):
    """Return how many tokens of a prompt Ollama reads, and counts: half of its context, if the prompt is longer."""
    return tokens if tokens <= context else context // 2 + 2


@pytest.mark.parametrize(
    ("lengths", "found"),
    [
        ((500, 1500, 4000, 5000, 6000, 7000), True),
        ((300, 400, 4100, 4150, 4200), True),
        ((5000, 5010, 5020), True),  # no prompt was read whole
        ((500, 1500, 4000), False),
        ((3000, 4000, 5000, 6000), False),  # two cut prompts are too few to tell
    ],
)
def test_prompts_cut_to_half_a_context_are_found(lengths, found):
    told = looked([(ask("word " * count), answer(read=ollama(count))) for count in lengths])
    assert list(told) == (["truncated"] if found else [])


def test_templates_and_scripts_of_their_own_length_are_no_cut_prompts():
    template = [(ask("word " * 400 + "a" * more), answer(read=400)) for more in range(3)]
    shorter = [(ask("word " * 350), answer(read=350)), (ask("字" * 900), answer(read=900))]
    assert looked([*template, *shorter]) == {}


def test_several_providers_behind_a_router_are_a_finding():
    inspector = Inspector("m", RemoteEndpoint(name="e"))
    for name in ("A", "B", "B", ""):
        inspector.hear(Remark(model="m", provider=name))
    found = inspector.result()
    assert names(*found.findings)["providers"].count == 2 and found.providers["B"].count == 2
    assert add_up(found, found).providers["A"].count == 2


HELLO = "Hello! I am an assistant, and I am here to help you with anything."


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([HELLO] * 20, True),
        ([HELLO] * 19, False),
        ([HELLO] * 30 + ["Yes."], False),
        (["yes"] * 30, False),  # a model that is sure, or one option of a study
        ([f"{HELLO} {number}" for number in range(30)], False),
    ],
)
def test_one_text_to_all_prompts_is_found(texts, found):
    pairs = [(ask(f"q {number}"), answer(text)) for number, text in enumerate(texts)]
    told = looked(pairs)
    assert ("one-text" in told) == found
    assert not found or HELLO[:40] in told["one-text"].detail


def test_one_text_to_one_prompt_and_one_refusal_to_all_are_no_finding():
    assert looked([(ask("q", sample=number), answer(HELLO)) for number in range(30)]) == {}
    assert looked([(ask(f"q {number}"), answer(HELLO, status="refused")) for number in range(30)]) == {}


def test_context_is_checked_where_it_is_known():
    pairs = [(ask("word " * 1000), answer(read=256))]
    assert looked(pairs) == {} and looked(pairs, context=512)["context"].count == 1
    assert looked(pairs, context=2000) == {}


def test_scores_of_every_kind_are_read():
    rounded = [round(value, 1) - 0.1 for value in honest(60)]
    scores = tuple(TokenScores(log_probability=value, count=1, values=(value,)) for value in rounded)
    assert "rounded" in looked([(Likelihood(prompt="p", continuations=()), Likelihoods(scores=scores))])
    top = (tuple(TopToken(str(place), value) for place, value in enumerate(rounded)),)
    assert "rounded" in looked([(ask("q", top_logprobs=60), answer(top_logprobs=top))])
    assert looked([(ask("q", top_logprobs=60, sample=1), answer(top_logprobs=top))]) == {}, "a repeat tells nothing new"


def test_names_are_counted_and_resumed_runs_add_up():
    inspector = Inspector("m", RemoteEndpoint(name="e"))
    for name in ("m", "m", "n"):
        inspector.hear(Remark(model=name, fingerprint="f"))
    now = inspector.result()
    assert names(*now.findings).keys() == {"other-model", "model-changed"}
    before = Integrity(checked=5, models={"m": Sighting(7, 1.0, 2.0)}, repeated="x", findings=now.findings[:1])
    both = add_up(before, now)
    assert (both.models["m"].count, both.models["m"].first, both.checked, both.repeated) == (9, 1.0, 5, "x")
    assert names(*both.findings)["other-model"].count == 2 * names(*now.findings)["other-model"].count
    assert add_up(None, now) is now


def test_one_option_chosen_at_every_prompt_is_no_finding():
    listed = [(ask(f"q {number}. Options: (1) '{HELLO}' (2) no."), answer(f"{HELLO[:-1]}")) for number in range(30)]
    assert looked(listed) == {}
    constrained = [(ask(f"q {number}"), answer(HELLO)) for number in range(30)]
    offered = [(msgspec.structs.replace(one, choices=(HELLO, "no")), said) for one, said in constrained]
    assert looked(offered) == {} and "one-text" in looked(constrained)
