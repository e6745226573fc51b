"""The demonstration: a study on the reference models, whose bias is known."""
