"""What all adapters of endpoints share: the wire, errors, waits, keys out of sight, images. No provider's dialect.

A reply is status, headers and raw JSON bytes (`Reply`); the adapter of a dialect makes the bodies and reads the bytes.
"""
