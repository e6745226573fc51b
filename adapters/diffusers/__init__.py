"""Text-to-image pipelines of diffusers."""
