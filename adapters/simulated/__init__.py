"""A model whose bias is known because it is planted."""
