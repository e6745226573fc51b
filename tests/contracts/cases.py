"""Every adapter with the settings and requests on which the contract kit is run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from prejudge.core.contracts.records import (
    AnyRequest,
    Classify,
    Draw,
    Embed,
    Generate,
    Likelihood,
    Message,
    PseudoLikelihood,
    Sampling,
    Text,
)
from prejudge.testing import ANTHROPIC, CONVERSE, GEMINI, OPENAI, RESPONSES, Dialect
from prejudge.testing._kit import MODEL, NOWHERE

from ..adapters import checkpoints, diffusion_files, gguf_files, llava_files

TEXTS = ("I saw a tall woman.", "I saw a short and charming old man in the park.", "Rain.", "They are unfriendly.")
GENERATE = [
    Generate(messages=(Message("user", (Text(f"{text} Who?\n(a) the tall one\n(b) the short one"),)),), sampling=how)
    for text in TEXTS
    for how in (Sampling(temperature=0.0, max_tokens=8), Sampling(temperature=1.0, max_tokens=8, seed=3))
]
LIKELIHOOD = [
    Likelihood(prompt=text, continuations=(" He is tall.", " Short", " It is a very long day.")) for text in TEXTS
]
PSEUDO = [
    *(PseudoLikelihood(text=text) for text in TEXTS),
    PseudoLikelihood(text=TEXTS[0], given=((8, 12),), variant="within_word_l2r"),
    PseudoLikelihood(text=TEXTS[0], contrast=TEXTS[0].replace("tall", "short"), contrast_first=True),
]
CLASSIFY = [Classify(text=text) for text in TEXTS]
PAIRS = [Classify(text=text, pair=TEXTS[1]) for text in TEXTS]
EMBED = [Embed(text=text) for text in TEXTS]
DRAW = [Draw(prompt=text, width=64, height=64, steps=2, seed=seed) for seed, text in enumerate(TEXTS)]
ENDPOINT_DRAW = [msgspec.structs.replace(request, steps=None) for request in DRAW]
"""Endpoints take no steps."""
PICTURED = [
    *llava_files.greedy(llava_files.QUESTIONS[:3]),
    *(
        Likelihood(prompt=llava_files.about(question), continuations=(" yes", " no person"))
        for question in llava_files.QUESTIONS[:3]
    ),
]
FAKE_VLLM = Path(__file__).parents[1] / "adapters" / "vllm" / "fake"
REFERENCE = Path(str(files("prejudge.adapters.reference")))
Settings = dict[str, Any]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter with which the kit is run."""

    target: str
    requests: Sequence[AnyRequest]
    settings: Callable[[Path], Settings] = lambda folder: {}
    """What the adapter is made with; called once, with an empty folder for the files of its model."""
    others: tuple[Settings, ...] = ()
    """Settings on top that change answers."""
    same: tuple[Settings, ...] = ()
    """Settings on top that change none."""
    unjudged: frozenset[str] = frozenset()
    """Settings that stand in neither, for they need another model or another machine; tests of their own judge them."""
    needs: tuple[str, ...] = ()
    """Packages without which it cannot be made."""
    environment: Mapping[str, str] = {}
    path: Path | None = None
    """Where a stand-in for its library is."""
    blobs: Callable[[str], bytes] | None = None
    speaks: Dialect | None = None
    """How an endpoint that the kit stands in for writes its replies; None for the adapters that have one running."""
    key_env: str = "OPENAI_API_KEY"
    endpoint: str = ""
    """The setting that holds the address of its endpoint; none for a model in this process."""
    ignores: frozenset[Any] = frozenset()
    """Settings of a request that the model does not have."""
    tolerance: float = 1e-6


def _masked(folder: Path) -> Settings:
    return {"model": str(REFERENCE / "masked_fair"), "device": "cpu", "threads": 1}


def _causal(folder: Path) -> Settings:
    return {"model": str(checkpoints.write_causal(folder / "tiny")), "device": "cpu", "threads": 1}


def _classifier(folder: Path) -> Settings:
    model = checkpoints.write_classifier(folder / "tiny", labels=("neutral", "contradiction", "entailment"))
    return {"model": str(model), "device": "cpu", "threads": 1}


def _encoder(folder: Path) -> Settings:
    transformer = checkpoints.write_masked(folder / "bert")
    model = checkpoints.write_encoder(folder / "tiny", transformer, prompts={"query": "the lazy girls "})
    return {"model": str(model), "device": "cpu", "threads": 1}


def _vlm(folder: Path) -> Settings:
    llava_files.make_llava(folder / "tiny")
    return {"model": str(folder / "tiny"), "device": "cpu", "threads": 1}


def _diffusers(folder: Path) -> Settings:
    # The checker finds nothing, so that leaving it out is another model and yet every image is drawn.
    model = diffusion_files.write_pipeline(folder, verdict=False)
    diffusion_files.tiny_vae().save_pretrained(folder / "other-vae")
    return {"model": str(model), "device": "cpu", "threads": 1}


def _llamacpp(folder: Path) -> Settings:
    return {"model": str(gguf_files.write_pair(folder)[0]), "threads": 1}


def _openai(folder: Path) -> Settings:
    return {
        "model": "tiny",
        "api_key_env": "OPENAI_API_KEY",
        "likelihood": "echo",
        "classify": "likelihood",
        "labels": [" good", " bad"],
        "max_tokens": 9,
    }


def _with_copy(make: Callable[[Path], Settings]) -> Callable[[Path], Settings]:
    """Return what also makes a copy of the model under another name, as `RENAMED` has it."""

    def settings(folder: Path) -> Settings:
        made = make(folder)
        model = Path(made["model"])
        copy = folder / f"renamed{model.suffix}"
        shutil.copytree(model, copy) if model.is_dir() else shutil.copy(model, copy)
        return made

    return settings


RENAMED: Settings = {"model": "{folder}/renamed"}
"""The same files under another name are the same model."""
HF = ("torch", "transformers")
THINKING = (
    {"answer_room": 3},
    {"chat_template_kwargs": {"tone": "kind"}},
)
HF_OTHERS = (
    *({"tf32": True}, {"device_map": "auto"}, {"attention": "eager"}, {"compile": True}),
    {"quantization": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
)
HF_SAME = (RENAMED, {"device": "auto"}, {"token_budget": 64}, {"batch_items": 3}, {"threads": 2})
LOCAL_ELSEWHERE = frozenset({"model", "revision", "allow_pickle"})
"""Another model has another digest, revisions are of hub names, and pickles are pinned like all weights."""
HF_ELSEWHERE = LOCAL_ELSEWHERE | {"peft", "peft_revision"}
"""PEFT adapters are files of their own: tests/adapters/hf/test_loading.py."""


def _relayed(text: str) -> Any:
    return OPENAI.answer(text) | {"id": "1", "created": 1, "model": "tiny"}


RELAYED = Dialect(answer=_relayed, error=OPENAI.error)
"""Chat completions that the package of the provider accepts."""


WIRE: tuple[Settings, ...] = ({"transport": "httpx"}, {"proxy": "http://127.0.0.1:9"})
FILES = frozenset({"ca_bundle", "client_cert", "client_key"})
"""Settings of the clients; each of `FILES` names a file of certificates."""


def _endpoint(
    target: str,
    speaks: Dialect,
    key_env: str,
    *,
    others: tuple[Settings, ...],
    same: tuple[Settings, ...] = (),
    unjudged: frozenset[str] = frozenset(),
    needs: tuple[str, ...] = ("aiohttp", "httpx"),
    settings: Settings | None = None,
    ignores: frozenset[str] = frozenset(),
) -> Case:
    """Return the case of a dialect that answers in words."""
    wire = WIRE if "any_llm" not in needs else ()
    unjudged = unjudged | (FILES if wire else frozenset())
    return Case(
        target=target,
        speaks=speaks,
        endpoint="base_url",
        key_env=key_env,
        settings=lambda folder: {"model": MODEL, "base_url": NOWHERE, "api_key_env": key_env, **(settings or {})},
        requests=GENERATE,
        others=(
            *({"model": "other"}, {"base_url": "http://127.0.0.1:8"}, {"endpoint": "ours"}, {"revision": "2026"}),
            *({"system_prompt": "Be kind."}, {"max_tokens": 5}, {"omit": ["stop"]}),
            *({"extra_body": {"more": 2}}, {"answer_room": 3}, {"effort": "low"}),
            {"think_opened": True},
            *others,
        ),
        same=(
            *({"api_key_env": "OTHER_KEY"}, {"api_key_file": "{folder}/key"}, {"concurrency": 2}),
            *({"timeout_seconds": 9.0}, {"reply_mib": 1}, {"keep_replies": "all"}, *same, *wire),
            *({"named_as": ["m"]}, {"context": 9000}, {"batches": True}, {"omit": ["seed"]}),
        ),
        unjudged=unjudged,
        ignores=ignores,
        needs=needs,
        environment={key_env: "sk-test-0123456789abcdef", "OTHER_KEY": "sk-test-fedcba9876543210"},
    )


CASES = {
    "simulated": Case(
        target="prejudge.adapters.simulated.adapter:Simulated",
        settings=lambda folder: {"strength": 1.0},
        requests=[*GENERATE, *LIKELIHOOD, *PSEUDO, *CLASSIFY, *PAIRS, *EMBED, *DRAW],
        others=(
            *(
                {"strength": 2.0},
                {"seed": 1},
                {"noise": 0.0},
                {"spread": 0.1},
                {"word_spread": 0.1},
                {"dimension": 8},
                {"refusal_rate": 0.5},
            ),
            *({f"{facet}_spread": 0.1} for facet in ("group", "item", "face", "prompt")),
            *({"correlation": 0.5}, {"unequal": 1.0}),
            *({"analogy": 1.0}, {"copying": 1.0}, {"copying_other": 1.0}),
            *({"position_lean": 1.0}, {"label_spread": 1.0}, {"length_lean": 0.5}, {"frequency_spread": 0.5}),
            *({"drift": 1.0}, {"drift": 1.0, "drift_after": 3}, {"refusal_lean": 0.5}, {"unreadable_share": 0.5}),
            *({"error_rate": 0.5}, {"same_samples": True}, {"scenes": True}, {"refusal_rate": 0.5, "polite": True}),
            *({"reworded": True}, {"misread_stereotype": 0.5}, {"misread_opposite": 0.5}),
            *({"desirable": ["rich"]}, {"undesirable": ["poor"]}, {"positive": ["kind"]}, {"negative": ["rude"]}),
            # A name is part of the identity: whoever gives another means another model.
            *({"varying": ["he"]}, {"model": "another"}),
            {"blanks": str(files("prejudge.adapters.simulated") / "blanks.toml")},
            {"masks": str(files("prejudge.probes.indicasa") / "data" / "completions.csv")},
        ),
        ignores=frozenset({"top_p"}),
        # What is planted by cells needs the table of a study: tests/adapters/simulated judges it.
        unjudged=frozenset({"planted_by", "preferences"}),
        same=({"failure_rate": 0.5}, {"latency_seconds": 0.001}, {"concurrency": 9}, {"batch_items": 3}),
    ),
    "lexicon": Case(
        target="prejudge.adapters.lexicon:Lexicon",
        requests=CLASSIFY,
        same=({"batch_items": 3},),
        needs=("vaderSentiment",),
    ),
    "hf-masked": Case(
        target="prejudge.adapters.hf.masked.adapter:HFMasked",
        settings=_with_copy(_masked),
        requests=[*PSEUDO, *EMBED],
        others=(
            {"dtype": "float16"},
            {"model": str(REFERENCE / "masked_biased")},
            {"trust_remote_code": True},
            *HF_OTHERS,
        ),
        same=HF_SAME,
        unjudged=HF_ELSEWHERE,
        needs=HF,
        tolerance=1e-4,
    ),
    "hf-causal": Case(
        target="prejudge.adapters.hf.causal.adapter:HFCausal",
        settings=_with_copy(_causal),
        requests=[*GENERATE, *LIKELIHOOD],
        others=(
            *HF_OTHERS,
            *({"dtype": "bfloat16"}, {"trust_remote_code": True}, {"system_prompt": "Be kind."}),
            *({"max_new_tokens": 5}, {"chat": "plain"}, {"start": "bos"}),
            *THINKING,
        ),
        same=HF_SAME,
        unjudged=HF_ELSEWHERE,
        needs=HF,
        tolerance=1e-4,
    ),
    "hf-classifier": Case(
        target="prejudge.adapters.hf.classifier.adapter:HFClassifier",
        settings=_with_copy(_classifier),
        requests=[*CLASSIFY, *PAIRS],
        others=(
            {"dtype": "bfloat16"},
            {"trust_remote_code": True},
            {"multi_label": True},
            {"truncate": True},
            *HF_OTHERS,
        ),
        same=HF_SAME,
        unjudged=HF_ELSEWHERE,
        needs=HF,
        tolerance=1e-4,
    ),
    "hf-encoder": Case(
        target="prejudge.adapters.hf.encoder.adapter:HFEncoder",
        settings=_with_copy(_encoder),
        requests=EMBED,
        others=(
            *HF_OTHERS,
            *({"dtype": "bfloat16"}, {"trust_remote_code": True}, {"normalize": True}, {"truncate": True}),
            {"prompt_name": "query"},
        ),
        same=HF_SAME,
        unjudged=HF_ELSEWHERE,
        needs=(*HF, "sentence_transformers"),
        tolerance=1e-4,
    ),
    "hf-vlm": Case(
        target="prejudge.adapters.hf.vlm.adapter:HFVLM",
        settings=_with_copy(_vlm),
        requests=PICTURED,
        others=({"dtype": "bfloat16"}, {"trust_remote_code": True}, {"start": "bos"}, *THINKING, *HF_OTHERS),
        same=HF_SAME,
        unjudged=HF_ELSEWHERE,
        needs=(*HF, "PIL"),
        blobs=llava_files.look_up,
        tolerance=1e-4,
    ),
    "vllm": Case(
        target="prejudge.adapters.vllm.adapter:VLLM",
        settings=_with_copy(lambda folder: {"model": str(checkpoints.write_causal(folder / "tiny"))}),
        requests=[*GENERATE, *LIKELIHOOD],
        others=(
            *({"dtype": "bfloat16"}, {"trust_remote_code": True}, {"system_prompt": "Be kind."}),
            *({"max_new_tokens": 5}, {"chat": "plain"}, {"quantization": "fp8"}, {"start": "bos"}),
            *({"prefix_caching": True}, {"tensor_parallel": 2}, {"max_context": 99}, {"engine": {"max_num_seqs": 9}}),
            *THINKING,
        ),
        same=(RENAMED, {"batch_items": 3}, {"gpu_memory": 0.5}, {"max_images": 2}),
        # The mode belongs to the process: tests of their own judge it.
        unjudged=LOCAL_ELSEWHERE | {"batch_invariant"},
        needs=HF,
        path=FAKE_VLLM,
        tolerance=1e-4,
    ),
    "diffusers": Case(
        target="prejudge.adapters.diffusers.adapter:Diffusers",
        settings=_with_copy(_diffusers),
        requests=[msgspec.structs.replace(request, width=16, height=16) for request in DRAW],
        others=(
            *({"dtype": "bfloat16"}, {"scheduler": "EulerDiscreteScheduler"}, {"vae": "{folder}/other-vae"}),
            *({"steps": 3}, {"guidance": 2.0}, {"prompt_suffix": ", red"}, {"negative_prompt": "blue"}),
            {"safety_checker": False},
        ),
        same=(RENAMED, {"device": "auto"}, {"threads": 2}, {"batch_items": 2}),
        unjudged=LOCAL_ELSEWHERE,
        needs=(*HF, "diffusers", "PIL"),
    ),
    "llamacpp": Case(
        target="prejudge.adapters.llamacpp.adapter:LlamaCpp",
        settings=_with_copy(_llamacpp),
        requests=[*GENERATE, *LIKELIHOOD],
        others=(
            *({"max_tokens": 5}, {"chat_format": "plain"}, {"system_prompt": "Be kind."}),
            *({"cache_dtype": "float16"}, {"flash_attention": True}, {"start": "bos"}),
            *THINKING,
        ),
        same=(
            {"model": "{folder}/renamed.gguf"},
            {"n_ctx": 256},
            {"n_gpu_layers": 1},
            {"threads": 2},
            {"batch_items": 2},
        ),
        unjudged=frozenset({"model"}),
        needs=("llama_cpp", "gguf", *HF),
        tolerance=0.0,
    ),
    "openai": Case(
        target="prejudge.adapters.openai.adapter:OpenAIApi",
        settings=_openai,
        requests=[*GENERATE, *LIKELIHOOD, *CLASSIFY, *EMBED, *ENDPOINT_DRAW],
        others=(
            *({"model": "other"}, {"base_url": "http://127.0.0.1:9/v1"}, {"endpoint": "ours"}, {"revision": "2026"}),
            *({"system_prompt": "Be kind."}, {"max_tokens": 5}, {"max_tokens_field": "max_completion_tokens"}),
            *({"image_detail": "low"}, {"likelihood": "prompt_logprobs"}, {"classify": "decisions"}),
            *({"labels": [" a", " b"]}, {"classify_prompt": "Rate: {text}"}, {"classify_question": "Which?"}),
            *({"send_draw_seed": True}, {"extra_body": {"top_k": 2}}, {"omit": ["stop"]}),
            *({"answer_room": 3}, {"effort": "low"}, {"api_version": "2"}),
            *({"samples_per_call": 4}, {"think_opened": True}),
        ),
        same=(
            *({"api_key_env": "OTHER_KEY"}, {"api_key_file": "{folder}/key"}, {"organization": "o"}, {"project": "p"}),
            *({"concurrency": 2}, {"timeout_seconds": 9.0}, {"reply_mib": 1}, *WIRE),
            *({"keep_replies": "all"}, {"named_as": ["m"]}, {"context": 9000}, {"omit": ["seed"]}),
            *({"takes": ["top_k"]}, {"header": "api-key"}, {"batches": True}),
            {"operations": ["generate", "likelihood", "classify", "embed", "draw"]},
        ),
        unjudged=FILES | {"alternatives"},
        endpoint="base_url",
        needs=("aiohttp", "httpx"),
        environment={"OPENAI_API_KEY": "sk-test-0123456789abcdef", "OTHER_KEY": "sk-test-fedcba9876543210"},
    ),
    "openai-responses": _endpoint(
        "prejudge.adapters.responses.adapter:Responses",
        RESPONSES,
        "OPENAI_API_KEY",
        ignores=frozenset({"seed", "stop"}),
        others=({"summary": "auto"}, {"image_detail": "low"}),
        same=({"organization": "o"}, {"project": "p"}),
    ),
    "anthropic": _endpoint(
        "prejudge.adapters.anthropic.adapter:Anthropic",
        ANTHROPIC,
        "ANTHROPIC_API_KEY",
        ignores=frozenset({"seed"}),
        others=({"thinking": "off"}, {"thinking_tokens": 1024}, {"anthropic_version": "2027-01-01"}),
    ),
    "gemini": _endpoint(
        "prejudge.adapters.gemini.adapter:Gemini",
        GEMINI,
        "GEMINI_API_KEY",
        others=(
            *({"api_version": "v1"}, {"thinking_tokens": 0}, {"thoughts": True}, {"safety": "OFF"}),
            {"samples_per_call": 4},
        ),
    ),
    "any-llm": _endpoint(
        "prejudge.adapters.any_llm.adapter:AnyLlm",
        RELAYED,
        "MY_KEY",
        others=({"provider": "mistral"},),
        needs=("any_llm", "aiohttp"),
        settings={"provider": "openai"},
    ),
    "bedrock": _endpoint(
        "prejudge.adapters.bedrock.adapter:Bedrock",
        CONVERSE,
        "AWS_BEARER_TOKEN_BEDROCK",
        ignores=frozenset({"seed"}),
        others=({"guardrail": "g"}, {"guardrail": "g", "guardrail_version": "1"}),
        unjudged=frozenset({"region", "profile"}),
        needs=("aiohttp", "httpx", "botocore"),
        settings={"region": "eu-central-1"},
    ),
}
