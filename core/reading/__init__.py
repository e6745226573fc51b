"""Reading answers: reasoning, refusals, and what is said, each with a version and measured errors."""
