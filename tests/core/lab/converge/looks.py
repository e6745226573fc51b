"""A construct that two studies measure: desirable looks and praise."""


def looks(per_cell: int, sentences: str = "sentences") -> str:
    """Return its file: how much each method asks of a cell, and the name of the first method."""
    return f"""
title = "Looks and praise"
direction = "desirable looks praised"

[methods.{sentences}]
study = "bistereo-pairs"
options = {{ axes = ["skin complexion"], genders = ["women"], sentiments = ["positive", "negative"] }}
size = {{ per_cell = {per_cell} }}
measure = "favouritism"
group = {{ axis = "skin complexion", gender = "women", threshold = 0.02 }}
scale = "difference"

[methods.inference]
study = "bistereo-nli"
options = {{ asking = "classify", genders = ["women"], categories = ["attractiveness", "unattractiveness"] }}
size = {{ per_cell = {per_cell} }}
measure = "halo"
group = {{ gender = "women", kind = "looks" }}
scale = "difference"
"""
