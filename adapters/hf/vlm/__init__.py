"""Vision-language models: answers and likelihoods about images."""
