"""What several probes share: strict CSV, sampling options, sentence pairs."""
