"""`openai`: settings, keys and the identity."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from prejudge.adapters.endpoint import wire as _wire
from prejudge.adapters.endpoint.keys import find_address, find_key
from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.adapters.openai.options import HOME
from prejudge.core.contracts.abilities import methods_of
from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import encode
from prejudge.core.contracts.errors import MissingExtraError, UsageError
from prejudge.core.contracts.installing import install_line
from prejudge.core.contracts.options import build_options
from prejudge.core.contracts.records import Generate, Message, Text
from prejudge.testing import raises_code

QUESTION = Generate(messages=(Message("user", (Text("q"),)),))
URL = "http://127.0.0.1:9/v1"


def identity(**settings) -> Identity:
    async def make() -> Identity:
        adapter = OpenAIApi(
            OpenAIOptions(**{"model": "tiny", "base_url": URL, "api_key_env": "OPENAI_API_KEY", **settings})
        )
        await adapter.aclose()
        return adapter.identity

    return asyncio.run(make())


def test_operations_follow_from_the_methods():
    assert methods_of(OpenAIApi) == {"generate", "likelihood", "classify", "embed", "draw"}


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "other"},
        {"base_url": "http://127.0.0.1:10/v1"},
        {"endpoint": "my server"},
        {"revision": "2024-07-18"},
        {"system_prompt": "Be brief."},
        {"max_tokens": 5},
        {"max_tokens_field": "max_completion_tokens"},
        {"image_detail": "low"},
        {"likelihood": "echo"},
        {"likelihood": "first_token"},
        {"send_draw_seed": True},
        {"omit": ("temperature",)},
        {"extra_body": {"top_k": 1}},
        {"extra_body": {"top_k": 2}},
        {"classify": "decisions", "labels": ("a", "b")},
        {"classify": "decisions", "labels": ("b", "a")},
        {"classify": "systemone", "labels": ("a", "b")},
        {"classify": "decisions", "labels": ("a", "b"), "classify_prompt": "{text}"},
        {"classify": "decisions", "labels": ("a", "b"), "classify_question": "?"},
    ],
)
def test_identity_changes_with_what_changes_answers(settings):
    assert encode(identity(**settings)) != encode(identity())


@pytest.mark.parametrize(
    "settings",
    [
        {"concurrency": 3},
        {"timeout_seconds": 1.0},
        {"transport": "httpx"},
        {"api_key_env": ""},
        {"organization": "org", "project": "p"},
        {"base_url": URL + "/"},
        {"alternatives": 5},
    ],
)
def test_identity_stays_with_what_does_not(settings):
    assert encode(identity(**settings)) == encode(identity())


def test_named_endpoint_may_move():
    moved = identity(endpoint="lab", base_url="http://127.0.0.1:10/v1")
    assert encode(moved) == encode(identity(endpoint="lab"))


def test_identity_tells_that_words_give_one_hot_scores():
    settings = identity(classify="generate", labels=("a", "b")).settings
    assert (settings["classify"], settings["classify_scores"], settings["label_rule"]) == ("generate", "one-hot", 1)


def test_ways_to_classify_differ():
    ways = ({"classify": way, "labels": ("a", "b"), "likelihood": "echo"} for way in ("likelihood", "generate"))
    assert len({encode(identity(**way)) for way in ways}) == 2


def test_order_of_extra_body_does_not_matter():
    one, other = {"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 2, "c": 1}, "a": 1}
    assert encode(identity(extra_body=one)) == encode(identity(extra_body=other))


def test_identity_is_known_without_a_network(server):
    assert identity().settings["endpoint"] == URL
    assert not server.seen


def test_address_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere:1/v1/")
    assert identity(base_url=None).settings["endpoint"] == "http://elsewhere:1/v1"


def test_address_falls_back_to_openai():
    assert identity(base_url=None).settings["endpoint"] == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    "url",
    ["http://user:hunter2@host/v1", "http://hunter2@host/v1", "https://host/v1?key=hunter2", "https://host/v1#hunter2"],
)
def test_address_with_a_secret_is_refused_unshown(url):
    with raises_code(UsageError, "options.address") as caught:
        identity(base_url=url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1", "http://[::1"])
def test_address_that_is_none_is_refused(url):
    with raises_code(UsageError, "options.address", "base_url"):
        identity(base_url=url)


@pytest.mark.parametrize("field", ["model", "messages", "stream", "n", "seed", "echo"])
def test_extra_body_cannot_set_what_requests_say(field):
    with raises_code(UsageError, "options.reserved", field):
        identity(extra_body={field: 1})


@pytest.mark.parametrize(
    "settings",
    [
        {"concurrency": 0},
        {"timeout_seconds": 0},
        {"likelihood": "guess"},
        {"alternatives": 0},
        {"image_detail": "finest"},
        {"transport": "carrier pigeon"},
    ],
)
def test_settings_outside_their_range_are_refused(settings):
    with pytest.raises(UsageError):
        build_options("model", OpenAIOptions, {"model": "tiny", **settings})


def test_key_is_sent(ask, server, key, transport):
    ask(QUESTION, transport=transport)
    assert server.seen[0].headers["Authorization"] == f"Bearer {key}"


def test_organization_and_project_are_sent(ask, server, transport):
    ask(QUESTION, organization="org-1", project="proj-1", transport=transport)
    assert server.seen[0].headers["OpenAI-Organization"] == "org-1"
    assert server.seen[0].headers["OpenAI-Project"] == "proj-1"


def test_account_of_the_environment_goes_to_openai_only(ask, server, transport, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    ask(QUESTION, transport=transport)
    told = {"openai-organization", "openai-project"}
    assert not told & {name.lower() for name in server.seen[0].headers}
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    ask(QUESTION, transport=transport)
    assert told <= {name.lower() for name in server.seen[1].headers}


@pytest.mark.parametrize("key", ["local", "test", "none"])
def test_placeholder_may_be_a_word_of_the_settings(ask, server, monkeypatch, key):
    monkeypatch.setenv("LAB_KEY", key)
    (answer,) = ask(QUESTION, model=f"{key}-model", api_key_env="LAB_KEY", system_prompt=f"This is a {key}.")
    assert answer.status == "ok" and server.seen[0].headers["Authorization"] == f"Bearer {key}"


def test_server_that_wants_no_key_gets_none(ask, server, transport):
    (answer,) = ask(QUESTION, api_key_env="", transport=transport)
    assert answer.text == "Q"
    assert "Authorization" not in server.seen[0].headers


def test_key_may_lie_in_a_file(ask, server, tmp_path):
    (tmp_path / "key").write_text("sk-from-a-file\n")
    ask(QUESTION, api_key_file=str(tmp_path / "key"), api_key_env="UNSET")
    assert server.seen[0].headers["Authorization"] == "Bearer sk-from-a-file"


def test_variable_may_name_the_file(ask, server, monkeypatch, tmp_path):
    (tmp_path / "key").write_text("sk-from-a-file\n")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "key"))
    ask(QUESTION)
    assert server.seen[0].headers["Authorization"] == "Bearer sk-from-a-file"


def test_missing_key_names_its_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with raises_code(UsageError, "endpoint.key-missing", "OPENAI_API_KEY"):
        identity()
    with raises_code(UsageError, "endpoint.key-missing", "LAB_KEY"):
        identity(api_key_env="LAB_KEY")


def test_key_in_place_of_its_variable_is_not_shown():
    with pytest.raises(UsageError) as caught:
        identity(api_key_env="sk-abcdefgh")
    assert "sk-abcdefgh" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "  \n", "two words", "line\nbreak", "gr\u00fcn"])
def test_file_without_a_key_is_refused_unshown(tmp_path, content):
    (tmp_path / "key").write_text(content, "utf-8")
    with pytest.raises(UsageError) as caught:
        find_key(OpenAIOptions(model="tiny", api_key_file=str(tmp_path / "key")), URL, HOME)
    assert not content.strip() or content.strip() not in str(caught.value)


def test_missing_key_file_is_named():
    with raises_code(UsageError, "endpoint.key-missing", "no/such/file"):
        find_key(OpenAIOptions(model="tiny", api_key_file="no/such/file"), URL, HOME)


def test_missing_packages_name_the_extra(monkeypatch):
    monkeypatch.setattr(_wire, "find_spec", lambda name: None)
    with raises_code(MissingExtraError, "missing-extra", install_line("openai")):
        identity()


def test_module_imports_no_sdk():
    code = (
        "import sys, prejudge.adapters.openai.adapter\n"
        "print(sorted({'openai', 'aiohttp', 'httpx', 'httpx2', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("own", "url", "goes"),
    [
        (None, None, True),
        (None, "https://api.openai.com/v1/", True),
        (None, "https://API.openai.com/v2", True),
        ("https://mine.example:444/v1", None, True),
        ("https://mine.example:444/v1", "https://mine.example:444/other", True),
        ("https://mine.example:444/v1", "https://api.openai.com/v1", True),
        (None, "http://api.openai.com/v1", False),
        (None, "https://api.openai.com.evil.example/v1", False),
        (None, "https://evil.example/api.openai.com/v1", False),
        (None, "http://127.0.0.1:9/v1", False),
        ("https://mine.example:444/v1", "https://mine.example/v1", False),
        ("", "https://evil.example/v1", False),
    ],
)
def test_openai_key_goes_to_its_own_hosts_only(monkeypatch, key, own, url, goes):
    if own is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", own)
    options = OpenAIOptions(model="m", base_url=url)
    if goes:
        assert find_key(options, find_address(options, HOME), HOME) == key
        return
    with raises_code(UsageError, "endpoint.key-host", "api_key_env"):
        OpenAIApi(options)
    named = OpenAIOptions(model="m", base_url=url, api_key_env="OPENAI_API_KEY")
    assert find_key(named, find_address(named, HOME), HOME) == key
