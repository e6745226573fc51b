"""The catalogue: registry, plugins, studies, published values, prices."""
