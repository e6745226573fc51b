"""The reading room: every answer of a store in a local web application, read-only, and labels that people give.

The index of a run is made of plain columns (`columns`), which `build` writes once from the store and `shelf` keeps; a
filter is a numpy mask over them. Nothing of a store is trusted: texts are shown inert, and names become no paths.
"""
