"""BIStereo: stereotypes about looks, in sentence pairs, inference and analogies."""
