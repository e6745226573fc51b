"""Folders of a stranger: registries that would like to use a key, ask an address, run code or read files elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

CANARIES = {
    "AWS_ACCESS_KEY_ID": "AKIACANARYCANARYCANA",
    "AWS_SECRET_ACCESS_KEY": "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",
    "AWS_SESSION_TOKEN": "canary-aws-session-token-9Kp5Jc0Fg",
    "AWS_BEARER_TOKEN_BEDROCK": "canary-bedrock-token-3Nd6Hs1Kp5",
    "OPENAI_API_KEY": "sk-canary-openai-0123456789abcdef",
    "OPENAI_ORG_ID": "org-canary-0123456789",
    "OPENAI_PROJECT_ID": "proj-canary-0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-canary-0123456789abcdef",
    "GEMINI_API_KEY": "canary-gemini-0123456789abcdef",
    "GOOGLE_API_KEY": "canary-google-0123456789abcdef",
    "HF_TOKEN": "hf_canary0123456789abcdefghijklmnop",
    "MISTRAL_API_KEY": "canary-mistral-0123456789abcdef",
    "LAB_KEY": "canary-lab-0123456789abcdef",
}
ENDPOINTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock", "any-llm")
MODELS = ("hf-causal", "hf-masked", "hf-classifier", "hf-encoder", "hf-vlm", "vllm", "diffusers")


class Folder(NamedTuple):
    """A folder's registry, and the commands that a user would run there."""

    name: str
    registry: str
    model: str = "x"
    study: str = "subtle-sai"


def folders(url: str, secret_file: str) -> Iterator[Folder]:
    """Yield the folders; `url` is the stranger's listener on this machine, `secret_file` a key elsewhere."""
    for adapter in ENDPOINTS:
        base: dict[str, Any] = {"model": "m", "base_url": url}
        base |= {"region": "eu-central-1"} if adapter == "bedrock" else {}
        base |= {"provider": "openai"} if adapter == "any-llm" else {}
        for name, more in _variants(adapter, url, secret_file).items():
            yield Folder(f"{adapter} {name}", model_entry("x", adapter, base | more))
        yield Folder(f"{adapter} default", model_entry("x", adapter, {"model": "m"} | _needed(adapter)))
    for adapter in MODELS:
        for name, more in {"remote": {"trust_remote_code": True}, "pickle": {"allow_pickle": 1}}.items():
            if adapter != "diffusers" or name == "pickle":
                yield Folder(f"{adapter} {name}", model_entry("x", adapter, {"model": "./model"} | more))
        yield Folder(f"{adapter} elsewhere", model_entry("x", adapter, {"model": secret_file}))
    yield Folder("vllm engine", model_entry("x", "vllm", {"model": "./model", "engine": {"worker_cls": "evil.Worker"}}))
    yield Folder(
        "hf quantisation",
        model_entry(
            "x", "hf-causal", {"model": "./model", "quantization": {"quant_method": "evil", "dataset": "/etc"}}
        ),
    )
    yield Folder("lora base", model_entry("x", "hf-causal", {"model": "./lora"}))
    yield Folder("simulated words", model_entry("x", "simulated", {"masks": secret_file}))
    yield from _studies(url, secret_file)


def _needed(adapter: str) -> dict[str, Any]:
    return {"any-llm": {"provider": "openai", "api_key_env": "OPENAI_API_KEY"}}.get(adapter, {})


def _variants(adapter: str, url: str, secret_file: str) -> dict[str, dict[str, Any]]:
    every = {
        "loopback": {},
        "keyless": {"api_key_env": ""},
        "another key": {"api_key_env": "AWS_SECRET_ACCESS_KEY"},
        "key file": {"api_key_file": secret_file},
        "nested": {"api_key_env": "", "extra_body": {"tools": [{"server_url": "http://evil.example/mcp"}]}},
        "odd type": {"api_key_env": ["LAB_KEY"]},
        "password": {"base_url": url.replace("://", "://me:word@"), "api_key_env": ""},
        "elsewhere": {"base_url": "http://evil.example/v1", "api_key_env": ""},
        "own key": {"api_key_env": "OPENAI_API_KEY"},
    }
    own: dict[str, dict[str, dict[str, Any]]] = {
        "openai": {
            "httpx": {"transport": "httpx", "api_key_env": ""},
            "proxy": {"proxy": "http://evil.example:3128", "base_url": "http://127.0.0.1:9/v1", "api_key_env": ""},
            "header": {"header": "api-key", "api_key_env": "LAB_KEY"},
            "thinking": {"thinking": "high", "api_key_env": "LAB_KEY"},
        },
        "bedrock": {"profile": {"profile": "default"}, "region": {"api_key_env": "", "region": "evil.example/x"}},
        "any-llm": {
            provider: {"provider": provider, "api_key_env": ""}
            for provider in ("bedrock", "gemini", "ollama", "mistral")
        },
    }
    return every | own.get(adapter, {})


def _studies(url: str, secret_file: str) -> Iterator[Folder]:
    stolen = f'openai:m[base_url="{url}",api_key_env="AWS_SECRET_ACCESS_KEY"]'
    signed = f'bedrock:m[base_url="{url}",region="eu-central-1"]'
    study = {"probe": "subtle", "metrics": {"subtle": {}}}
    for name, more in {
        "role": {"roles": {"subject": stolen}},
        "signed role": {"roles": {"subject": signed}},
        "built-in role": {"roles": {"subject": "gpt-4o"}},
        "role elsewhere": {"roles": {"subject": "/etc"}},
        "data": {"options": {"data": secret_file}},
        "calibration role": {"calibration": {"roles": {"judge": stolen}}},
        "calibration model": {"calibration": {"real": {signed: 0.0}}},
        "calibration program": {"calibration": {"trained": {"data": "os:system"}}},
        "calibration words": {"calibration": {"settings": {"masks": secret_file}}},
        "multiverse": {"multiverse": {"choices": {"role.subject": ["simulated-fair", stolen]}}},
        "multiverse data": {"multiverse": {"choices": {"data": [secret_file]}}},
    }.items():
        yield Folder(f"study {name}", _toml("studies.s", study | more), model="simulated-fair", study="s")


def model_entry(name: str, adapter: str, settings: Mapping[str, Any]) -> str:
    """Return the entry of a model."""
    return f"[models.{name}]\nadapter = {json.dumps(adapter)}\nsettings = {_value(settings)}\n"


def _toml(table: str, values: Mapping[str, Any]) -> str:
    return f"[{table}]\n" + "".join(f"{name} = {_value(value)}\n" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_value(part)}" for name, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
