"""What several backends share: images, sampling, refusals, threads, torch."""
