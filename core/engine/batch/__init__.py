"""Asking by a provider's batches: drafted in the store, handed in, waited for, and collected."""
