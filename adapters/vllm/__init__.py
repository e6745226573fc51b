"""vLLM in this process: answers, and likelihoods of continuations, of text and vision-language models on GPUs."""
