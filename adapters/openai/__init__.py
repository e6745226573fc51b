"""Endpoints that speak the API of OpenAI."""
