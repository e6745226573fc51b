"""`openai`: likelihoods by what an endpoint offers, and never by guess."""

from __future__ import annotations

from typing import Any

import pytest

from prejudge.adapters.openai.align import Tokens, find_continuation, find_start
from prejudge.core.contracts.errors import PermanentError, UnsupportedOperationError
from prejudge.core.contracts.records import Image, Likelihood, Message, Text, TokenScores, Usage
from prejudge.testing import Reply, raises_code
from prejudge.testing.chaos.tiny import chat, expected, log_probability, scored

PROMPT = "The sky is"
ENDS = (" blue", " deeply green.", " fall")
WAYS = ["echo", "prompt_logprobs"]


def messages(text: str, *more: Message) -> tuple[Message, ...]:
    return (Message("user", (Text(text),)), *more)


def score(ask: Any, prompt: Any, *ends: str, **settings: Any) -> Any:
    (answer,) = ask(Likelihood(prompt=prompt, continuations=ends), **settings)
    return answer


def values(answer: Any) -> list[list[float]]:
    if isinstance(answer, Exception):
        raise answer
    return [list(one.values) for one in answer.scores]


@pytest.mark.parametrize("way", WAYS)
def test_whole_text_is_scored(ask, way, transport):
    answer = score(ask, PROMPT, *ENDS, likelihood=way, transport=transport)
    assert values(answer) == [expected(PROMPT, end) for end in ENDS]
    assert [one.count for one in answer.scores] == [1, 3, 1]


@pytest.mark.parametrize("way", WAYS)
def test_shared_token_counts(ask, way):
    # "walk" + "ing" splits before `ing`, "sk" + "y" does not split: the one token of both is scored.
    assert values(score(ask, "I was walk", "ing", likelihood=way)) == [expected("I was walk", "ing")]
    (shared,) = score(ask, "The sk", "y", likelihood=way).scores
    assert shared == TokenScores(
        log_probability=log_probability("<s>The", " sky"), count=1, values=(log_probability("<s>The", " sky"),)
    )


@pytest.mark.parametrize("way", WAYS)
def test_all_continuations_are_scored_from_the_same_token_on(ask, way):
    # "sk" + "y" is one token and "sk" + "ing" are two: the "sk" is scored with both.
    answer = score(ask, "The sk", "y", "ing", likelihood=way)
    first = log_probability("<s>The", " sky")
    assert values(answer) == [[first], [log_probability("<s>The", " sk"), log_probability("<s>The sk", "ing")]]
    assert answer.overlap == 3 and score(ask, PROMPT, *ENDS, likelihood=way).overlap == 0


@pytest.mark.parametrize("way", WAYS)
def test_repeated_character_is_counted_once(ask, way):
    assert values(score(ask, "-", "--", likelihood=way)) == [expected("-", "--")]


@pytest.mark.parametrize("way", WAYS)
def test_empty_prompt_is_scored_behind_the_first_special_token(ask, way):
    assert values(score(ask, "", "Sky", likelihood=way)) == [expected("", "Sky")]


def test_usage_adds_up(ask):
    assert score(ask, PROMPT, " a", " b", likelihood="echo").usage.output_tokens == 2


def test_messages_are_scored_as_a_begun_answer(ask, server):
    answer = score(ask, messages("Colour?"), "blue sky", likelihood="prompt_logprobs")
    whole = "[user] Colour?\n[assistant]"
    assert values(answer) == [expected(whole, "blue sky")]
    assert server.seen[0].body["continue_final_message"] is True
    assert server.seen[0].body["add_generation_prompt"] is False


def test_begun_answer_is_continued(ask, server):
    score(ask, messages("Colour?", Message("assistant", (Text("It is"),))), " blue", likelihood="prompt_logprobs")
    assert server.seen[0].body["messages"][-1] == {"role": "assistant", "content": "It is blue"}


def test_messages_cannot_be_echoed(ask, server):
    assert isinstance(score(ask, messages("Colour?"), "blue", likelihood="echo"), PermanentError)
    assert not server.seen


def test_first_token_of_a_text(ask):
    answer = score(ask, "Is it?", " yes", " no", likelihood="first_token")
    assert values(answer) == [[log_probability("Is it?", " yes")], [log_probability("Is it?", " no")]]


def test_first_token_of_a_conversation(ask, server):
    answer = score(ask, messages("Which?"), "B", "A", likelihood="first_token", alternatives=5)
    assert values(answer) == [[log_probability("Which?", "B")], [log_probability("Which?", "A")]]
    assert server.seen[0].body["top_logprobs"] == 5
    assert len(server.seen) == 1


@pytest.mark.parametrize("end", ["D", " A", "AB"])
def test_option_outside_the_top_is_an_error(ask, end):
    answer = score(ask, messages("Which?"), "A", end, likelihood="first_token")
    assert isinstance(answer, PermanentError)
    assert answer.code == "endpoint.not-among-first" and repr(end) in str(answer)


def test_marker_of_absence_is_an_error(ask, server):
    body = chat("A")
    tops = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -9999.0}]
    body["choices"][0]["logprobs"] = {"content": [{"top_logprobs": tops}]}
    server.plan = [Reply(body=body)]
    assert isinstance(score(ask, messages("Which?"), "A", "B", likelihood="first_token"), PermanentError)


@pytest.mark.parametrize("way", ["echo", "prompt_logprobs", "first_token"])
@pytest.mark.parametrize("prompt", [PROMPT, messages(PROMPT)])
def test_server_that_ignores_the_option_is_an_error(ask, server, way, prompt):
    choice = {"text": " end", "message": {"content": " end"}, "finish_reason": "length"}
    server.model = lambda path, body: {"choices": [choice], "usage": {"completion_tokens": 1}}
    answer = score(ask, prompt, " blue", " green", likelihood=way)
    assert isinstance(answer, PermanentError)


def test_server_that_scores_only_its_own_token_is_an_error(ask, server):
    logprobs = {"tokens": [" blue"], "token_logprobs": [-0.5], "top_logprobs": [{" blue": -0.5}]}
    server.model = lambda path, body: {"choices": [{"text": " blue", "logprobs": logprobs}]}
    answer = score(ask, PROMPT, " blue", likelihood="echo")
    assert isinstance(answer, PermanentError)
    assert answer.code == "endpoint.echo"


@pytest.mark.parametrize("value", [0.5, -9999.0])
def test_numbers_that_are_no_log_probabilities_are_an_error(ask, server, value):
    logprobs = {"tokens": ["a", " b", " c"], "token_logprobs": [None, value, -0.5]}
    server.model = lambda path, body: {"choices": [{"text": "a b", "logprobs": logprobs}]}
    assert isinstance(score(ask, "a", " b", likelihood="echo"), PermanentError)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_constant_echo_is_an_error(ask, server, value):
    logprobs = {"tokens": ["a", " b", " c", " d", " e"], "token_logprobs": [None, *[value] * 4]}
    server.model = lambda path, body: {"choices": [{"text": "", "logprobs": logprobs}]}
    answer = score(ask, "a b", " c d", likelihood="echo")
    assert isinstance(answer, PermanentError)
    assert answer.code == "endpoint.logprobs"


def test_constant_prompt_log_probabilities_are_an_error(ask, server):
    entries = [
        None,
        *({str(place): {"logprob": 0.0, "decoded_token": f" {letter}"}} for place, letter in enumerate("bcde")),
    ]
    server.model = lambda path, body: {"choices": [{"text": "", "prompt_logprobs": entries}]}
    assert isinstance(score(ask, "a b", " c d e", likelihood="prompt_logprobs"), PermanentError)


@pytest.mark.parametrize("values", [(0.0, 0.0), (-0.1, -0.2), (-9.0, -9.0, -9.0, -9.0)])
def test_first_tokens_that_no_model_gives_are_an_error(ask, server, values):
    tops = [{"token": letter, "logprob": value} for letter, value in zip("ABCD", values, strict=False)]
    body = chat("A")
    body["choices"][0]["logprobs"] = {"content": [{"top_logprobs": tops}]}
    server.plan = [Reply(body=body)]
    assert isinstance(score(ask, messages("Which?"), "A", "B", likelihood="first_token"), PermanentError)


def test_unscored_first_token_is_an_error(ask, server):
    logprobs = {"tokens": ["ab", "c"], "token_logprobs": [None, -0.5]}
    server.model = lambda path, body: {"choices": [{"text": "ab", "logprobs": logprobs}]}
    answer = score(ask, "", "ab", likelihood="echo")
    assert isinstance(answer, PermanentError)
    assert answer.code == "request.no-context"


def test_several_tokens_per_place_are_an_error(ask, server):
    entry = {"1": {"logprob": -0.5, "decoded_token": " b"}, "2": {"logprob": -0.2, "decoded_token": " c"}}
    server.model = lambda path, body: {"choices": [{"text": "", "prompt_logprobs": [None, entry]}]}
    assert isinstance(score(ask, "a", " b", likelihood="prompt_logprobs"), PermanentError)


def test_empty_continuation_is_an_error(ask, server):
    assert isinstance(score(ask, PROMPT, "", likelihood="echo"), PermanentError)
    assert not server.seen


def test_unchosen_way_is_refused(ask, server):
    with raises_code(UnsupportedOperationError, "model.operation", "first_token"):
        score(ask, PROMPT, " blue")
    assert not server.seen


def test_system_prompt_counts_in_conversations(ask, server):
    score(ask, messages("Which?"), "A", likelihood="first_token", system_prompt="Be brief.")
    assert server.seen[0].body["messages"][0]["role"] == "system"


def test_system_prompt_goes_before_a_text(ask):
    answer = score(ask, PROMPT, " blue", likelihood="echo", system_prompt="Be brief.")
    assert values(answer) == [expected(f"Be brief.\n\n{PROMPT}", " blue")]


def test_image_of_a_conversation_is_needed(ask, server):
    prompt = (Message("user", (Image("0" * 64), Text("Which?"))),)
    assert isinstance(score(ask, prompt, "A", likelihood="first_token"), PermanentError)


def own_values(tokens: Tokens, prompt: str, continuation: str, counted: Usage) -> list[float | None]:
    found = find_continuation(tokens, prompt, continuation, counted, "there")
    return found.values[found.first :]


def start(tokens: list[str], prompt: str | None, continuation: str) -> int | None:
    return find_start(tokens, [None, *[-1.0] * (len(tokens) - 1)], prompt, continuation)


@pytest.mark.parametrize(
    ("tokens", "prompt", "continuation", "place"),
    [
        (["<s>", "It", " is", " so"], "It is", " so", 3),
        (["<s>", "It", " i", "s", " so"], "It i", "s so", 3),
        (["<s>", "It", " is so"], "It is", " so", 2),
        # SentencePiece: blanks are lost, or written as a mark.
        (["<s>", "It", "is", "so"], "It is", " so", 3),
        (["<s>", "\u2581It", "\u2581is", "\u2581so"], "It is", " so", 3),
        (["<s>", "It", "is", "\u2581", "so"], "It is", " so", 3),
        # The bytes of one character: shown with the last of them.
        (["<s>", "It", "", "", "\u00e9"], "It", "\u00e9", 2),
        (["<s>", "It", " is", " no"], "It is", " so", None),
        (["<s>", "It", " was", " so"], "It is", "s so", None),
        (["so"], "It is", " it is so", None),
        (["<s>", "template", "so"], None, "so", 2),
    ],
)
def test_continuation_is_found_from_the_end(tokens, prompt, continuation, place):
    assert start(tokens, prompt, continuation) == place


# As llama-cpp-python reports them: without the token in front, the bytes of a character as nothing.
CAFE = Tokens(
    ["one", " c", "a", "f", "", "", "pene"], [None, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0], [0, 3, 5, 6, 7, 7, 8]
)


@pytest.mark.parametrize(
    ("prompt", "continuation", "values"),
    [
        ("one", " caf\u00e9", [-1.0, -2.0, -3.0, -4.0, -5.0]),
        ("one c", "af\u00e9", [-2.0, -3.0, -4.0, -5.0]),
        ("one caf", "\u00e9", [-4.0, -5.0]),
    ],
)
def test_offsets_decide_where_tokens_do_not_spell(prompt, continuation, values):
    assert own_values(CAFE, prompt, continuation, Usage(output_tokens=1)) == values


@pytest.mark.parametrize(
    "tokens",
    [
        CAFE._replace(offsets=None),
        CAFE._replace(offsets=[0, 3, 5, 6, 7, 7, 9]),
        CAFE._replace(offsets=[3, 6, 8, 9, 10, 10, 11]),
        CAFE._replace(offsets=[0, 4, 5, 6, 7, 7, 8]),
        CAFE._replace(offsets=[0, 5, 3, 6, 7, 7, 8]),
        Tokens(CAFE.texts[:-1], CAFE.values[:-1], [0, 3, 5, 6, 7, 7]),
    ],
)
def test_offsets_that_disagree_with_the_text_are_an_error(tokens):
    with pytest.raises(PermanentError):
        find_continuation(tokens, "one", " caf\u00e9", Usage(output_tokens=1), "there")


@pytest.mark.parametrize("generated", [0, 1])
def test_count_shows_a_token_in_front_where_none_is_shown_behind(generated):
    # An answer that ends at once, or begins anew: what was generated is a special token and is not echoed.
    counted = Usage(input_tokens=7, output_tokens=generated)
    cafe = Tokens(CAFE.texts[:-1], CAFE.values[:-1], [0, 3, 5, 6, 7, 7])
    assert own_values(cafe, "one c", "af\u00e9", counted) == [-2.0, -3.0, -4.0, -5.0]
    plain = Tokens(["It", " is", " so"], [None, -1.0, -2.0])
    assert own_values(plain, "It is", " so", Usage(input_tokens=4, output_tokens=generated)) == [-2.0]


@pytest.mark.parametrize("end", [" ", "\n"])
def test_blank_at_the_end_is_not_taken_for_a_generated_token(end):
    tokens = Tokens(["It", " is", " so", end], [None, -1.0, -2.0, -3.0], [0, 2, 5, 8])
    with pytest.raises(PermanentError):
        find_continuation(tokens, "It is", f" so{end}", Usage(input_tokens=4, output_tokens=1), "there")


def test_echo_without_the_generated_token_is_an_error(ask, server):
    # llama-cpp-python leaves it out just when its numbers stand one place off.
    logprobs = {"tokens": ["a", " b"], "token_logprobs": [None, -0.5], "text_offset": [0, 1]}
    usage = {"prompt_tokens": 2, "completion_tokens": 1}
    server.model = lambda path, body: {"choices": [{"text": "a b", "logprobs": logprobs}], "usage": usage}
    assert isinstance(score(ask, "a", " b", likelihood="echo"), PermanentError)


def test_made_up_model_has_no_constant():
    assert len({value for _, value in scored("a b c d e f g")}) > 6
