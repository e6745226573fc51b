"""Endpoints that speak Anthropic's Messages API."""
