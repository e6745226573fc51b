"""BiasDora: associations that nobody listed, in texts and images."""
