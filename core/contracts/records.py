"""Requests to a model and its responses, as immutable records.

Each operation has one tagged request and one response. A record's canonical encoding (`canonical.py`) is part of the
store's key. So a new field needs a default that is left out of the encoding (`omit_defaults`), and a change of meaning
needs a new key version.

An image is always named by the sha256 of its bytes, and one that is converted for models by the original's, the version
of the normaliser and the background colour; the store has the bytes once, in its blobs.

Records hold no cycles, so the garbage collector does not track them (`gc=False`): a run holds thousands of requests,
and would spend a tenth of its time on walking through them.

Example:
    >>> from prejudge import records
    >>> prompt = records.Message("user", (records.Text("Is a nurse a woman? Answer yes or no."),))
    >>> records.Generate(messages=(prompt,), sampling=records.Sampling(temperature=0.0)).sample
    0
"""

from __future__ import annotations

from typing import Literal

import msgspec

Scalar = str | int | float | bool | None
Span = tuple[int, int]
"""Start and end of a part of a text, in characters, end excluded."""
ResponseStatus = Literal["ok", "refused", "filtered"]
Variant = Literal["original", "within_word_l2r"]


class Text(msgspec.Struct, frozen=True, tag="text", gc=False):
    """A piece of text in a message."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image", gc=False):
    """An image in a message, by the sha256 (hex) of its bytes, with which a model fetches it."""

    sha256: str
    """If it is not 8-bit sRGB as it is: the original's, and how it is converted, as `SHA256-1-ffffff`."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Text | Image, ...]


Prompt = str | tuple[Message, ...]


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of all requests."""

    attempt: int = 0
    """0 for the first request; increased by one each time the answer was unreadable and is requested again."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Sampling settings. None: the model's own default."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    top_k: int | None = None
    """Draw from this many of the likeliest tokens only; a model that cannot do so refuses the request."""
    min_p: float | None = None
    """Draw from tokens at least this many times as likely as the likeliest only; else refused, too."""

    def __post_init__(self) -> None:
        """Make equal settings equal in the key: 1 and 1.0, -0.0 and 0.0."""
        for name in ("temperature", "top_p", "min_p"):
            if (value := getattr(self, name)) is not None:
                msgspec.structs.force_setattr(self, name, float(value) + 0.0)


_PLAIN = Sampling()


class Generate(Request, frozen=True, kw_only=True, tag="generate"):
    """Ask for a continuation of messages."""

    messages: tuple[Message, ...]
    sampling: Sampling = _PLAIN
    sample: int = 0
    """Number of this repeat: each repeat of one prompt is a draw of its own."""
    top_logprobs: int = 0
    """How many alternatives per generated token to report; 0 reports none."""
    json_schema: str = ""
    """JSON text of the schema (JSON Schema) that the answer must fit; a model that cannot do so refuses the request."""
    choices: tuple[str, ...] = ()
    """The texts one of which the answer must be, word for word; else refused, too."""

    def __post_init__(self) -> None:
        """Make equal requests equal in the key: a default is left out of it only if it is the very same object."""
        if self.sampling == _PLAIN:
            msgspec.structs.force_setattr(self, "sampling", _PLAIN)
        if self.json_schema:
            msgspec.structs.force_setattr(self, "json_schema", _canonical_json(self.json_schema))

    def beyond(self) -> frozenset[str]:
        """Return the names of what is asked that not every model can do."""
        if self.sampling.top_k is None and self.sampling.min_p is None and not self.json_schema and not self.choices:
            return _NOTHING
        asked = {"top_k": self.sampling.top_k is not None, "min_p": self.sampling.min_p is not None}
        asked |= {"json_schema": bool(self.json_schema), "choices": bool(self.choices)}
        return frozenset(name for name, is_asked in asked.items() if is_asked)


_NOTHING: frozenset[str] = frozenset()


def _canonical_json(text: str) -> str:
    """Return JSON text with its names in order and without blanks; a text that is no JSON as it is."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted").decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text


class Likelihood(Request, frozen=True, kw_only=True, tag="likelihood"):
    """Ask how likely each continuation is after one prompt."""

    prompt: Prompt
    continuations: tuple[str, ...]


_ORIGINAL: Variant = "original"


class PseudoLikelihood(Request, frozen=True, kw_only=True, tag="pseudo_likelihood"):
    """Ask for the pseudo-log-likelihood of a sentence, given some of its words.

    What is conditioned on, and so never masked nor scored, is either named by character spans (`given`) or found
    by the model's own tokens: with `contrast`, every token outside the longest matching blocks that this text's
    token ids share with those of `contrast` (CrowS-Pairs, Nangia et al. 2020).
    """

    text: str
    given: tuple[Span, ...] = ()
    contrast: str | None = None
    contrast_first: bool = False
    """Align from `contrast` to `text`: matching blocks depend on the order, and a pair must use one alignment."""
    variant: Variant = _ORIGINAL
    """`original`: Salazar et al. 2020. `within_word_l2r`: Kauf and Ivanova 2023."""

    def __post_init__(self) -> None:
        """Make equal requests equal in the key."""
        if self.variant == _ORIGINAL:
            msgspec.structs.force_setattr(self, "variant", _ORIGINAL)


class Classify(Request, frozen=True, kw_only=True, tag="classify"):
    """Ask for a probability per label of a text, or of a text pair."""

    text: str
    pair: str | None = None


class Embed(Request, frozen=True, kw_only=True, tag="embed"):
    """Ask for a vector that stands for a text."""

    text: str


_SIDE = 512


class Draw(Request, frozen=True, kw_only=True, tag="draw"):
    """Ask for an image of a prompt; the seed belongs to this image alone."""

    prompt: str
    width: int = _SIDE
    height: int = _SIDE
    steps: int | None = None
    guidance: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Make equal settings equal in the key."""
        if self.guidance is not None:
            msgspec.structs.force_setattr(self, "guidance", float(self.guidance) + 0.0)
        for name in ("width", "height"):
            if getattr(self, name) == _SIDE:
                msgspec.structs.force_setattr(self, name, _SIDE)


AnyRequest = Generate | Likelihood | PseudoLikelihood | Classify | Embed | Draw


def prompt_of(request: Request) -> tuple[Message, ...]:
    """Return the messages of a request; none where its prompt is plain text."""
    prompt = request.messages if isinstance(request, Generate) else getattr(request, "prompt", "")
    return () if isinstance(prompt, str) else prompt


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What an answer cost in tokens, as the model counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    """Of the output tokens, those of reasoning, where the model tells."""
    cached_tokens: int = 0
    """Of the input tokens, those that the endpoint had cached, where it tells."""


class Response(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What every response carries."""

    status: ResponseStatus = "ok"
    usage: Usage = Usage()


class TokenScores(Response, frozen=True, kw_only=True, tag="token_scores"):
    """Log-probabilities (natural logarithm) of the scored tokens of one text."""

    log_probability: float
    """Sum of `values`."""
    count: int
    """Number of scored tokens."""
    values: tuple[float, ...] = ()
    """One log-probability per scored token, in the order of the text."""


class TopToken(msgspec.Struct, frozen=True, gc=False):
    """One alternative for a generated token."""

    token: str
    log_probability: float


class Generation(Response, frozen=True, kw_only=True, tag="generation"):
    """An answer in words, as received; an empty text is an answer too.

    Its status is what the provider signals. Refusals in words, and reasoning in the text, are found when it is read.
    """

    text: str
    """As received, reasoning and its marks among it. A stage receives the answer alone."""
    finish_reason: str = ""
    top_logprobs: tuple[tuple[TopToken, ...], ...] = ()
    """Per generated token, those of reasoning among them."""
    reasoning: str = ""
    """What the provider gave as reasoning, beside the text. A stage receives that of the text, too."""
    opened: bool = False
    """Whether the prompt ended with an opening mark of reasoning, so that the text begins within it."""
    reply: str = ""
    """The raw JSON of an endpoint's reply, or its beginning, where the settings keep it: by default if unusual."""


class Likelihoods(Response, frozen=True, kw_only=True, tag="likelihoods"):
    """One `TokenScores` per continuation, in the order asked.

    All are scored from the same token on, so that they are probabilities of the same event: what follows the text in
    front of that token. Values of different requests may begin at different places.
    """

    scores: tuple[TokenScores, ...]
    overlap: int = 0
    """Characters at the end of the prompt that are scored with every continuation, since a token holds both."""


class Classification(Response, frozen=True, kw_only=True, tag="classification"):
    """A probability per label."""

    probabilities: dict[str, float]
    text: str = ""
    """What a model said that was asked in words; a refusal keeps its text."""


class Embedding(Response, frozen=True, kw_only=True, tag="embedding"):
    """A vector."""

    vector: tuple[float, ...]


class Drawing(Response, frozen=True, kw_only=True, tag="drawing"):
    """An image by the sha256 (hex) of its bytes; none if it was filtered."""

    image: str | None


AnyResponse = TokenScores | Generation | Likelihoods | Classification | Embedding | Drawing
