"""Models of Hugging Face Transformers, one folder per kind."""
