"""Programs of a source checkout that made what the package ships; no wheel has them."""
