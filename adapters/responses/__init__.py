"""Endpoints that speak OpenAI's Responses API."""
