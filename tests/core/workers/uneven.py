"""A study whose answers differ in length: first all are short, then all are long. Copied to where workers import it."""

import msgspec

from prejudge.adapters.simulated.adapter import Simulated
from prejudge.core.contracts import LargeStage, Probe, Trial
from prejudge.core.contracts.records import Generate, Message, Sampling, Text, Usage

MOST, READ, SHORT, REQUESTS = 400, 5, 160, 600
LONGEST = MOST + READ
"""Tokens of a long answer and its request."""
REGISTRY = """[adapters.uneven]
target = "uneven:Uneven"
[probes.uneven]
target = "uneven:UnevenProbe"
[studies.uneven]
probe = "uneven"
metrics = {}
[models.uneven]
adapter = "uneven"
prices = { output = 1000.0 }
settings = { latency_seconds = 0.05, batch_items = 8, concurrency = 1 }
"""


class Asked(LargeStage):
    name, role, operation, factors, outcomes = "asked", "subject", Generate, ("place",), ("said",)

    def count(self, earlier):
        return REQUESTS

    def trials(self, earlier):
        sampling = Sampling(temperature=0.0, max_tokens=MOST)
        for place in range(REQUESTS):
            request = Generate(messages=(Message("user", (Text(f"{place:020}"),)),), sampling=sampling)
            yield Trial(id=str(place), factors={"place": place}, request=request)

    def read(self, factors, response):
        return {"said": response.text}


class UnevenProbe(Probe):
    def stages(self, options):
        return [Asked()]


class Uneven(Simulated):
    async def generate_batch(self, requests):
        """Count one token for each of the first answers, and all that are allowed for each later one."""
        answers = await super().generate_batch(requests)
        long = [int(one.messages[0].parts[0].text) >= SHORT for one in requests]
        used = [Usage(input_tokens=READ, output_tokens=MOST if one else 1) for one in long]
        return [msgspec.structs.replace(one, usage=usage) for one, usage in zip(answers, used, strict=True)]
