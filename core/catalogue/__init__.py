"""From names to things: the registry, plugins, studies, published values, prices."""
