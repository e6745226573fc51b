"""BIStereo: stereotypes about body image, in sentence pairs, inference and analogies."""
