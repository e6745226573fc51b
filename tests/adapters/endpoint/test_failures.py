"""Proxies of the environment."""

from __future__ import annotations

from prejudge.adapters.endpoint.failures import find_proxy


def test_proxy_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert find_proxy("http://far.example/v1") == "http://proxy:3128"
    monkeypatch.setenv("no_proxy", "far.example")
    assert find_proxy("http://far.example/v1") is None
