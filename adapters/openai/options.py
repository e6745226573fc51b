"""Settings of `openai`, and the address, key and identity that follow from them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from ...core.contracts import Options
from ...core.contracts.adapter import Identity
from ...core.contracts.errors import UsageError
from ...core.contracts.inputs import file_bytes
from ...core.contracts.records import Scalar
from ...core.contracts.secrets import is_random, looks_secret, secret_name, secret_place
from ..shared.reasoning import Tags, thinking_settings
from ..shared.refusals import RULE_VERSION
from .labels import RULE_VERSION as LABEL_RULE
from .labels import bare_label

VERSION, SPANS = "1", "2"
"""The second where continuations are scored, all from the same token on; other answers keep the first."""
OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
FIXED = frozenset({"model", "messages", "prompt", "input", "n", "stream", "echo", "logprobs", "top_logprobs", "seed"})
"""Fields of a body that `extra_body` may not set: they belong to the request."""
Positive = Annotated[int, msgspec.Meta(ge=1)]
LikelihoodWay = Literal["prompt_logprobs", "echo", "first_token"]
Operation = Literal["generate", "likelihood", "classify", "embed", "draw"]
ClassifyWay = Literal["likelihood", "generate", "decisions", "systemone"]
_PROMPT = "Classify the text.\nText: {text}\nLabel:"
_PROMPT_FOR_WORDS = "Which of these labels fits the text best: {labels}?\nText: {text}\nAnswer with the label alone."


class OpenAIOptions(Options, frozen=True, kw_only=True):
    """Settings of `openai`."""

    model: str
    """The endpoint's name for the model."""
    base_url: str | None = None
    """Address of the endpoint, including `/v1`. None takes the environment's OPENAI_BASE_URL, else OpenAI's own."""
    endpoint: str | None = None
    """Name of the endpoint in the identity, for a model whose address changes; None takes the address."""
    revision: str | None = None
    """Version of the weights behind the name (a commit, a digest, a date); part of the identity, never sent."""
    named_as: tuple[str, ...] = ()
    """Names that replies give the model, if they are no versions of `model`: that behind an alias or a deployment."""
    context: Positive | None = None
    """Tokens of the model's context, if known: a longer prompt that is answered all the same is a finding."""
    operations: tuple[Operation, ...] = ()
    """Supported operations, such as ["draw"]; others are refused before they are sent. Empty: not known."""
    api_key_env: str | None = None
    """NAME of the variable that holds the key, or NAME_FILE its file; "": no key. None: OPENAI_API_KEY at its hosts."""
    api_key_file: str | None = None
    """A file that holds the key and nothing else; used in place of the environment."""
    organization: str | None = None
    """OpenAI organisation; None takes the environment's OPENAI_ORG_ID."""
    project: str | None = None
    """OpenAI project; None takes the environment's OPENAI_PROJECT_ID."""
    concurrency: Positive = 64
    """Maximum number of concurrent calls and of open connections."""
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    """Time limit of a call in seconds; a call that takes longer fails and is sent again."""
    reply_mib: Positive = 16
    """Maximum size of a reply in MiB, decompressed; eight times as much for an image. A larger one fails."""
    batches: bool | None = None
    """Whether the endpoint takes batches (`prejudge run --batch`). None: OpenAI's own address does, others do not."""
    transport: Literal["lean", "sdk"] = "lean"
    """`sdk` sends every call through the package's own stack: slower, for networks where the lean path fails."""
    system_prompt: str | None = None
    """Text before every prompt; for messages, the system message, joined with their own."""
    max_tokens: Positive | None = None
    """Maximum number of tokens to generate if the request sets no limit."""
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
    refusal_rule: bool = True
    """Give answers that open like a refusal (in English) the status `refused`; their text is kept."""
    extra_body: dict[str, Any] = {}
    """Further fields of every request, such as {top_k = 20}; a null removes a field. Part of the identity: no keys."""

    answer_room: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens added to the limit of every answer in words, for a model that reasons before it answers."""
    effort: str | None = None
    """How much to reason, sent as `reasoning_effort`, such as none, minimal, low, medium, high."""
    think_tags: Tags | None = None
    """The marks around reasoning in the text of answers; None takes <think> and </think>."""
    omit: tuple[str, ...] = ()
    """Fields of answers in words that the endpoint refuses, such as ["temperature", "stop"]; they are not sent.
    A `stop` that is not sent is applied to the answer."""

    def __repr__(self) -> str:
        """Return the model only: a mistaken setting may hold a key."""
        return f"OpenAIOptions(model={self.model!r}, ...)"


def check_options(options: OpenAIOptions) -> None:
    """Refuse settings that cannot work together.

    Raises:
        UsageError: which, and how to mend it.
    """
    if fixed := sorted(FIXED & options.extra_body.keys()):
        raise UsageError(
            f"extra_body may not set {', '.join(fixed)}: they belong to each request.", code="options.reserved"
        )
    if (name := secret_name(options.extra_body)) is not None:
        raise UsageError(
            f"extra_body may not set {name}: it is stored with the answers. See api_key_env.",
            code="options.secret",
        )
    if place := secret_place(options.extra_body) or next(
        (name for name, value in options.extra_body.items() if isinstance(value, str) and is_random(value)), None
    ):
        raise UsageError(
            f"{place} of extra_body looks like a secret, and extra_body is stored with the answers. Put the secret "
            "into an environment variable, and name that with api_key_env.",
            code="options.secret",
        )
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


def find_address(options: OpenAIOptions) -> str:
    """Return the base url without a closing slash.

    Raises:
        UsageError: it is not an http(s) address, or it contains a user, a query or a fragment; it is then not shown.
    """
    url = (options.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port_is_sound = parts.port is None or parts.port > 0
    except ValueError:
        raise UsageError(
            "base_url is not an address; write it like http://127.0.0.1:8000/v1.", code="options.address"
        ) from None
    if parts.username is not None or parts.password is not None or "?" in url or "#" in url:
        raise UsageError(
            "base_url must not contain a user, a password or a query; put the key into the environment.",
            code="options.address",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_sound:
        raise UsageError(
            f"base_url {url!r} is not an address; write it like http://127.0.0.1:8000/v1.", code="options.address"
        )
    if options.endpoint is None and looks_secret(url):
        raise UsageError(
            f"the path of base_url at {parts.hostname} looks like it has a secret, and the address is stored with the "
            "answers. Set endpoint = 'NAME', which is stored in its place; base_url itself can come from the "
            "environment variable OPENAI_BASE_URL.",
            code="options.secret",
        )
    return url


def find_key(options: OpenAIOptions, address: str) -> str | None:
    """Return the key, or None for a server that wants none.

    `OPENAI_API_KEY` goes to OpenAI and to the address of the environment's `OPENAI_BASE_URL` only; for any other
    address the settings must name the variable.

    Raises:
        UsageError: there is no key at the configured place, or it belongs to another address; the message names the
            place and never shows a key.
    """
    if options.api_key_file is not None:
        return _checked(_read_key(options.api_key_file), f"the file {options.api_key_file!r}")
    name = options.api_key_env
    if name is None:
        name = OPENAI_KEY
        if _origin(address) not in map(_origin, (OPENAI_URL, os.environ.get("OPENAI_BASE_URL", ""))):
            raise UsageError(
                f"{name} is not sent to {urlsplit(address).netloc}: it belongs to OpenAI and to OPENAI_BASE_URL. "
                "Set api_key_env to the NAME of this server's own variable, or to '' for a server without keys.",
                code="endpoint.key-host",
            )
    if not name:
        return None
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise UsageError(
            "api_key_env must be the NAME of an environment variable, never the key itself.", code="options.secret"
        )
    key = os.environ.get(name, "").strip()
    if not key and (file := os.environ.get(f"{name}_FILE", "").strip()):
        return _checked(_read_key(file), f"the file that {name}_FILE names")
    if not key:
        raise UsageError(
            f"the environment variable {name} is not set. Set it to the key, name another with api_key_env, "
            "or set api_key_env = '' for a server that wants none.",
            code="endpoint.key-missing",
        )
    return _checked(key, f"the environment variable {name}")


def _origin(address: str) -> tuple[str, str]:
    """Return scheme, host and port of an address."""
    parts = urlsplit(address.strip())
    return parts.scheme.lower(), parts.netloc.lower()


def _read_key(name: str) -> str:
    try:
        return file_bytes(Path(name).expanduser(), 1 << 16).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "not text"
        raise UsageError(
            f"the file of the key, {name!r}, cannot be read: {problem}.", code="endpoint.key-missing"
        ) from None


def _checked(key: str, place: str) -> str:
    if not key:
        raise UsageError(f"{place} is empty; it should hold the key.", code="endpoint.key-missing")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError(
            f"{place} does not hold a key: it has blanks, line breaks or special characters.",
            code="endpoint.key-unusable",
        )
    return key


def ensure_no_key(identity: Identity, key: str | None) -> None:
    """Refuse settings that hold the key, because an identity is stored with the answers; the key is not shown.

    Raises:
        UsageError: the key stands in one of them.
    """
    if key is not None and any(key in str(value) for value in (identity.model, *identity.settings.values())):
        raise UsageError(
            "a setting holds the key itself. Put it into an environment variable; see api_key_env.",
            code="options.secret",
        )


def make_identity(options: OpenAIOptions, address: str) -> Identity:
    """Return the identity of this model: all settings that reach the endpoint or change how replies are read."""
    settings: dict[str, Scalar] = {"endpoint": options.endpoint or address, "refusal_rule": 0}
    if options.refusal_rule:
        settings["refusal_rule"] = RULE_VERSION
    for name in ("system_prompt", "max_tokens", "max_tokens_field", "image_detail", "likelihood"):
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
    if options.send_draw_seed:
        settings["send_draw_seed"] = True
    settings |= thinking_settings(options)
    if options.effort is not None:
        settings["effort"] = options.effort
    if options.omit:
        settings["omit"] = msgspec.json.encode(sorted(options.omit)).decode()
    if options.extra_body:
        settings["extra_body"] = msgspec.json.encode(options.extra_body, order="sorted").decode()
    version = SPANS if options.likelihood in {"prompt_logprobs", "echo"} else VERSION
    return Identity(
        adapter="openai", version=version, model=options.model, digest=options.revision or "", settings=settings
    )
