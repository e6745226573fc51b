"""Subtler biases: associations between the polarity of a given term and of the chosen option."""
