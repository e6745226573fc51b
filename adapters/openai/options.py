"""Settings of `openai`, and the address, key and identity that follow from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from ...core.contracts import harmless
from ...core.contracts.adapter import Identity
from ...core.contracts.errors import UsageError
from ...core.contracts.thinking import Level
from ..endpoint.keys import Home, check_extra
from ..endpoint.options import WireOptions, endpoint_settings
from ..shared.thinking import by_body, by_effort
from .labels import RULE_VERSION as LABEL_RULE
from .labels import bare_label

VERSION, SPANS = "1", "2"
"""The second where continuations are scored, all from the same token on; other answers keep the first."""
OPENAI_URL = "https://api.openai.com/v1"
FIXED = frozenset({"model", "messages", "prompt", "input", "n", "stream", "echo", "logprobs", "top_logprobs", "seed"})
HOME = Home("openai", "OpenAI", OPENAI_URL, "OPENAI_BASE_URL", "OPENAI_API_KEY", extra="openai", fixed=FIXED)
LikelihoodWay = Literal["prompt_logprobs", "echo", "first_token"]
Operation = Literal["generate", "likelihood", "classify", "embed", "draw"]
Beyond = Literal["top_k", "min_p", "choices"]
ClassifyWay = Literal["likelihood", "generate", "decisions", "systemone"]
_PROMPT = "Classify the text.\nText: {text}\nLabel:"
_PROMPT_FOR_WORDS = "Which of these labels fits the text best: {labels}?\nText: {text}\nAnswer with the label alone."


class OpenAIOptions(WireOptions, frozen=True, kw_only=True):
    """Settings of `openai`."""

    option_effects = harmless(
        "operations organization project header api_version takes samples_per_call max_tokens_field "
        "image_detail likelihood alternatives classify labels classify_prompt classify_question send_draw_seed"
    )

    base_url: str | None = None
    """Address of the endpoint, including `/v1`. None takes the environment's OPENAI_BASE_URL, else OpenAI's own."""
    operations: tuple[Operation, ...] = ()
    """Supported operations, such as ["draw"]; others are refused before they are sent. Empty: not known."""
    organization: str | None = None
    """OpenAI organisation; None takes the environment's OPENAI_ORG_ID."""
    project: str | None = None
    """OpenAI project; None takes the environment's OPENAI_PROJECT_ID."""
    batches: bool | None = None
    """Whether the endpoint takes batches (`prejudge run --batch`). None: OpenAI's own address does, others do not."""
    header: Literal["authorization", "api-key"] = "authorization"
    """Header that carries the key: Azure's own keys go into `api-key`."""
    api_version: str | None = None
    """Version of the API in the query of each address (`api-version`), which Azure's deployments want."""
    takes: tuple[Beyond, ...] = ()
    """Fields beyond OpenAI's that the endpoint takes: `top_k`, `min_p`, `choices` (vLLM's structured outputs).
    Requests that need others are refused."""
    samples_per_call: Annotated[int, msgspec.Meta(ge=1, le=128)] = 1
    """Samples of one question to ask for in one call (`n`), where the endpoint offers it; part of the identity."""
    omissible: ClassVar[frozenset[str]] = WireOptions.omissible | {"max_completion_tokens"}
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The endpoint's name for that limit. None takes the newer name at OpenAI's address, the older one elsewhere."""
    image_detail: Literal["auto", "low", "high"] | None = None
    """Level of detail of images for the endpoint; None takes the endpoint's default."""
    likelihood: LikelihoodWay | None = None
    """The way to get log-probabilities: `prompt_logprobs`, `echo` or `first_token`. Servers differ, so choose it."""
    alternatives: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    """Number of likeliest first tokens to request with `first_token`."""
    classify: ClassifyWay | None = None
    """The way to get a probability per label: `likelihood`, `generate`, `decisions` or `systemone`."""
    labels: tuple[str, ...] = ()
    """Labels of `classify`. With `likelihood` they are scored as written; a leading blank belongs to the label."""
    classify_prompt: str | None = None
    """Prompt of `classify` with {text}, for pairs {pair}, and {labels} for all labels. None takes a default."""
    classify_question: str = "Which label fits best?"
    """Question of `decisions` and `systemone` about the text."""
    send_draw_seed: bool = False
    """Send the seed of an image as `seed`; OpenAI refuses the field, some servers use it."""

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set the reasoning effort, `none` for off; or the switch of a chat template, if `extra_body` has one."""
        return by_body(settings, level) or by_effort(settings, level, off="none", on="medium")


def check_options(options: OpenAIOptions) -> None:
    """Refuse settings that cannot work together.

    Raises:
        UsageError: which, and how to mend it.
    """
    check_extra(options.extra_body, HOME.fixed)
    if not re.fullmatch(r"[\w.-]*", options.api_version or ""):
        raise UsageError(f"api_version {options.api_version!r} is no version.", code="options.value")
    if options.classify is not None:
        _check_classify(options)


def _check_classify(options: OpenAIOptions) -> None:
    names = [label.strip() for label in options.labels]
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(
            "classify needs at least two different labels, such as labels = [' positive', ' negative'].",
            code="options.value",
        )
    if options.classify == "likelihood" and options.likelihood is None:
        raise UsageError(
            "classify = 'likelihood' needs the setting likelihood, such as likelihood = 'prompt_logprobs'.",
            code="options.conflict",
        )
    prompt = prompt_of(options)
    if "{text}" not in prompt:
        raise UsageError("classify_prompt needs {text} at the place of the text.", code="options.value")
    if options.classify != "generate":
        return
    bare = {bare_label(name) for name in names}
    if "" in bare or len(bare) < len(names):
        raise UsageError(
            f"classify = 'generate' cannot tell these labels apart in an answer: {', '.join(names)}.",
            code="options.value",
        )
    if "{labels}" not in prompt and not all(name in prompt for name in names):
        raise UsageError(
            "classify_prompt must name the labels for classify = 'generate'; {labels} stands for them all.",
            code="options.value",
        )


def prompt_of(options: OpenAIOptions) -> str:
    """Return the template of `classify`: that of the settings, or one for the way that they name."""
    if options.classify_prompt is not None:
        return options.classify_prompt
    return _PROMPT_FOR_WORDS if options.classify == "generate" else _PROMPT


def make_identity(options: OpenAIOptions, address: str) -> Identity:
    """Return the identity of this model: all settings that reach the endpoint or change how replies are read."""
    settings = endpoint_settings(options, address)
    for name in ("api_version", "max_tokens_field", "image_detail", "likelihood"):
        if (value := getattr(options, name)) is not None:
            settings[name] = value
    if options.classify is not None:
        settings["classify"] = options.classify
        settings["classify_prompt"] = prompt_of(options)
        settings["classify_question"] = options.classify_question
        settings["labels"] = msgspec.json.encode(options.labels).decode()
    if options.classify == "generate":
        # Ones and noughts, and no probabilities: whoever reads the results must see it.
        settings["classify_scores"] = "one-hot"
        settings["label_rule"] = LABEL_RULE
    if options.samples_per_call > 1:
        settings["samples_per_call"] = options.samples_per_call
    if options.send_draw_seed:
        settings["send_draw_seed"] = True
    version = SPANS if options.likelihood in {"prompt_logprobs", "echo"} else VERSION
    return Identity(
        adapter="openai", version=version, model=options.model, digest=options.revision or "", settings=settings
    )
