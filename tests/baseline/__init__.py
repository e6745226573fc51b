"""What studies compute from stored responses, as JSON Lines without the store's schema; later code is judged by it."""
