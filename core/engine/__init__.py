"""The engine of a run: planning, scheduling, rate limits, retries, budgets and records."""
