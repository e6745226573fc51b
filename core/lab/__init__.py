"""Studies of studies: one construct by several methods, where variance comes from, the result under other choices."""
