"""The verbs of the Python interface. `prejudge` itself lists them and loads each on first use.

A verb that asks models is a coroutine function whose name begins with `a`, and a blocking twin without the `a` that
`blocking` makes of it: the same arguments, result and documentation. All other verbs only block.
"""
