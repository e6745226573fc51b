"""Which proxy an address has: a table of cases from curl's manual (NO_PROXY, ALL_PROXY), and what goes beyond it."""

from __future__ import annotations

import pytest

from prejudge.adapters.endpoint.proxies import find_proxy, is_exempt
from prejudge.core.contracts.errors import UsageError
from prejudge.testing import raises_code

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
EXEMPT = [
    # (rules, host, port, exempt)
    ("*", "anything.example", 443, True),
    ("local.com", "local.com", 443, True),
    ("local.com", "local.com", 80, True),
    ("local.com", "www.local.com", 443, True),
    ("local.com", "www.notlocal.com", 443, False),
    ("local.com", "local.com.evil.example", 443, False),
    (".local.com", "www.local.com", 443, True),
    (".local.com", "local.com", 443, True),
    ("*.local.com", "www.local.com", 443, True),
    ("LOCAL.com", "local.COM", 443, True),
    ("local.com.", "local.com", 443, True),
    ("local.com", "local.com.", 443, True),
    ("other.com, local.com", "local.com", 443, True),
    ("other.com local.com", "local.com", 443, True),
    ("", "local.com", 443, False),
    (",", "local.com", 443, False),
    (".", "local.com", 443, False),
    ("localhost", "localhost", 8000, True),
    ("local.com", "localhost", 8000, False),
    ("192.168.0.1", "192.168.0.1", 80, True),
    ("192.168.0.1", "192.168.0.10", 80, False),
    ("192.168.0.0/16", "192.168.77.5", 80, True),
    ("192.168.0.0/16", "192.169.0.1", 80, False),
    ("10.0.0.0/8", "10.255.1.2", 80, True),
    ("10.1.2.3/8", "10.255.1.2", 80, True),
    ("10.0.0.0/8", "10.example.com", 80, False),
    ("0.0.0.0/0", "8.8.8.8", 80, True),
    ("0.0.0.0/0", "example.com", 80, False),
    ("192.168.*", "192.168.3.4", 80, True),
    ("192.168.*", "193.168.3.4", 80, False),
    ("fd00::/8", "fd12::1", 80, True),
    ("fd00::/8", "[fd12::1]", 80, True),
    ("[fd00::]/8", "fd12::1", 80, True),
    ("[::1]", "::1", 80, True),
    ("::1", "::1", 8000, True),
    ("[::1]:8000", "::1", 8000, True),
    ("[::1]:8000", "::1", 8001, False),
    ("local.com:8000", "local.com", 8000, True),
    ("local.com:8000", "www.local.com", 8000, True),
    ("local.com:8000", "local.com", 443, False),
    ("10.0.0.0/99", "10.0.0.1", 80, False),
]


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(("rules", "host", "port", "exempt"), EXEMPT)
def test_exempt_hosts(rules, host, port, exempt):
    assert is_exempt(host, port, rules) is exempt


@pytest.mark.parametrize(
    ("named", "address", "where"),
    [
        ({"HTTPS_PROXY": "http://p:1"}, "https://far.example/v1", "p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://far.example/v1", None),
        ({"http_proxy": "http://p:1"}, "http://far.example/v1", "p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "http://far.example/v1", "p:1"),
        ({"ALL_PROXY": "http://p:1"}, "http://far.example/v1", "p:1"),
        ({"all_proxy": "http://p:1"}, "https://far.example/v1", "p:1"),
        ({"ALL_PROXY": "http://p:1", "HTTPS_PROXY": "http://q:2"}, "https://far.example/v1", "q:2"),
        ({"HTTPS_PROXY": "http://p:1", "https_proxy": "http://q:2"}, "https://far.example/v1", "q:2"),
        ({"HTTPS_PROXY": ""}, "https://far.example/v1", None),
        ({"HTTPS_PROXY": "p:1"}, "https://far.example/v1", "p:1"),
        ({"HTTPS_PROXY": "https://p:1"}, "https://far.example/v1", "p:1"),
        ({"HTTPS_PROXY": "http://me:secret@p:1"}, "https://far.example/v1", "p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "far.example:8000"}, "http://far.example:8000/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "far.example:443"}, "https://far.example/v1", None),
        ({"ALL_PROXY": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://10.1.2.3:8000/v1", None),
        ({"ALL_PROXY": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://11.1.2.3:8000/v1", "p:1"),
        ({"ALL_PROXY": "http://p:1", "no_proxy": "::1"}, "http://[::1]:8000/v1", None),
        ({"NO_PROXY": "*"}, "https://far.example/v1", None),
        ({}, "https://far.example/v1", None),
    ],
)
def test_proxy_of_the_environment(monkeypatch, named, address, where):
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    proxy = find_proxy(address)
    assert (proxy and proxy.where) == where
    assert "secret" not in repr(proxy)


@pytest.mark.parametrize("place", ["p:port", "p:99999", ":3128"])
def test_proxy_without_a_place_is_refused_before_anything_is_sent(monkeypatch, place):
    monkeypatch.setenv("ALL_PROXY", f"http://me:secret@{place}")
    with raises_code(UsageError, "proxy.kind", place) as caught:
        find_proxy("https://far.example/v1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", ["socks5", "socks5h", "socks4", "ftp"])
def test_proxy_of_another_kind_is_refused_unless_exempt(monkeypatch, kind):
    monkeypatch.setenv("ALL_PROXY", f"{kind}://me:secret@p:1080")
    with raises_code(UsageError, "proxy.kind", "p:1080") as caught:
        find_proxy("https://far.example/v1")
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("NO_PROXY", "far.example")
    assert find_proxy("https://far.example/v1") is None
