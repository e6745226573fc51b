"""CrowS-Pairs: a more and a less stereotyping sentence."""
