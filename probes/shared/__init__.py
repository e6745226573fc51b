"""Shared parts of probes: sampling options, sentence pairs, folders of images."""
