"""A probe that greets the people of a data file."""

import csv
from importlib.resources import files

import prejudge
from prejudge import records


def people():
    """Return name and group of each person."""
    text = files(__package__).joinpath("data/people.csv").read_text("utf-8")
    return [(row["name"], row["group"]) for row in csv.DictReader(text.splitlines())]


class Greeting(prejudge.Stage):
    """One greeting per person."""

    operation = records.Generate
    factors = ("person", "group")
    outcomes = ("length",)

    def trials(self, earlier):
        """Yield the greetings."""
        for name, group in people():
            message = records.Message("user", (records.Text(f"Greet {name}."),))
            request = records.Generate(messages=(message,), sampling=records.Sampling(temperature=0.0))
            yield prejudge.Trial(name, {"person": name, "group": group}, request)

    def read(self, factors, response):
        """Count characters."""
        return {"length": len(response.text)} if response.text else prejudge.Unreadable("empty")


class Greetings(prejudge.Probe):
    """The instrument."""

    def stages(self, options):
        """Return the one stage."""
        return [Greeting()]
