"""prejudge: measure what a model prejudges."""
