"""A bridge to providers without an adapter of their own."""
