"""From stored answers to estimates: scoring, sensitivity, replication, rechecks."""
