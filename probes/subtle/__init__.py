"""Subtler biases: associations of polarity between what is given and what is chosen."""
