"""What a probe may ask and a server may answer: all kinds of requests and responses, with the oddest of texts."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

from prejudge.core.contracts.records import (
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    Message,
    PseudoLikelihood,
    Sampling,
    Text,
    TokenScores,
    TopToken,
    Usage,
)

ODD = [
    "",
    "\0",
    "a\0b",
    "\ufeff",
    "\u2028\u2029",
    "\x7f\x85",
    "\U0010ffff",
    "\r\n\t",
    "null",
    '"text":"x"',
    '{"part":1}',
    "\\",
    "\\u0000",
    "%s %(key)s",
    "e\u0301",
    "\u00e9",
    "\u212b",
]
sound_text = st.text(max_size=20) | st.sampled_from(ODD) | st.sampled_from(ODD).map(lambda text: f'{text}"' * 30)
any_text = st.text(st.characters(exclude_categories=[]), max_size=20) | sound_text
"""Lone surrogates too."""
sound_float = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**31 - 1)


def is_sound(text: str) -> bool:
    """Say whether a text is valid unicode."""
    return not any(unicodedata.category(character) == "Cs" for character in text)


def requests(text, number=sound_float):
    """Return a strategy of requests."""
    return st.one_of(kinds_of_request(text, number))


def kinds_of_request(text, number=sound_float):
    """Return a strategy for each kind of request."""
    image = st.builds(Image, sha256=st.just("ab" * 32))
    message = st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant"]),
        parts=st.lists(st.builds(Text, text=text) | image, max_size=2).map(tuple),
    )
    messages = st.lists(message, max_size=3).map(tuple)
    sampling = st.builds(
        Sampling,
        temperature=st.none() | st.integers(0, 2) | number,
        top_p=st.none() | number,
        max_tokens=st.none() | st.integers(),
        stop=st.lists(text, max_size=2).map(tuple),
        seed=st.none() | st.integers(),
    )
    side = st.sampled_from([256, 512, 768])
    attempt = st.integers(0, 3)
    spans = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=2).map(tuple)
    variant = st.sampled_from(["original", "within_word_l2r"])
    return [
        st.builds(Generate, messages=messages, sampling=sampling, sample=st.integers(0, 400), attempt=attempt),
        st.builds(Likelihood, prompt=text | messages, continuations=st.lists(text, max_size=3).map(tuple)),
        st.builds(PseudoLikelihood, text=text, given=spans, contrast=st.none() | text, variant=variant),
        st.builds(Classify, text=text, pair=st.none() | text, attempt=attempt),
        st.builds(Embed, text=text),
        st.builds(Draw, prompt=text, width=side, height=side, guidance=st.none() | number, seed=st.integers()),
    ]


def responses(text, number=sound_float, count=counts):
    """Return a strategy of responses."""
    usage = st.builds(Usage, input_tokens=count, output_tokens=count)
    status = st.sampled_from(["ok", "refused", "filtered"])
    values = st.lists(number, max_size=4).map(tuple)
    scores = st.builds(TokenScores, log_probability=number, count=st.integers(0, 9), values=values)
    top = st.lists(st.builds(TopToken, token=text, log_probability=number), max_size=2).map(tuple)
    return st.one_of(
        st.builds(Generation, text=text, status=status, usage=usage, top_logprobs=st.lists(top, max_size=2).map(tuple)),
        st.builds(Likelihoods, scores=st.lists(scores, max_size=3).map(tuple), usage=usage),
        scores,
        st.builds(Classification, probabilities=st.dictionaries(text, number, max_size=3)),
        st.builds(Embedding, vector=values),
        st.builds(Drawing, image=st.none() | st.just("ab" * 32)),
    )
