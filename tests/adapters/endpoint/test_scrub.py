"""What looks like a key is hidden in the error texts of endpoints."""

from __future__ import annotations

import pytest

from prejudge.adapters.endpoint.scrub import Scrubber


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hunter2hunter2",
        '{"api_key": "hunter2hunter2"}',
        "sk-hunter2hunter2",
        "bearer hunter2hunter2",
        "ClientHttpProxyError: 407, url='http://me:hunter2hunter2@127.0.0.1:3128'",
    ],
)
def test_what_looks_like_a_key_is_hidden(text):
    assert "hunter2" not in Scrubber(None).text(text)


def test_scrubbed_text_is_one_short_line():
    assert Scrubber(None).text("a\n b\t c") == "a b c"
    assert len(Scrubber(None).text("word " * 1000)) <= 300


@pytest.mark.parametrize("key", ["test", "local", "EMPTY", "none"])
def test_placeholder_blanks_no_word(key):
    scrub = Scrubber(key)
    assert scrub.text(f"the {key} of the {key}") == f"the {key} of the {key}"
    assert scrub.raw(f'{{"text": "{key}"}}'.encode()) == f'{{"text": "{key}"}}'.encode()
    assert not scrub.finds(key.encode())


def test_short_key_is_hidden_where_it_stands_alone():
    scrub = Scrubber("token-42")
    assert "token-42" not in scrub.text("no such key: token-42.")
    assert scrub.text("a token-421 of mytoken-42x") == "a token-421 of mytoken-42x"
