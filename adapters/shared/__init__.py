"""Parts that several backends share: images, sampling, refusals, threads, torch."""
