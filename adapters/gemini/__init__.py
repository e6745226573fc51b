"""Endpoints that speak Google's generateContent."""
