"""Studies of studies: calibration, one construct by several methods, where variance comes from, other choices."""
