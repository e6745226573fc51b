"""One run: what is asked, how fast, in which order, and what is recorded."""
