"""An adapter that answers with the question."""

import prejudge


class EchoOptions(prejudge.Options, frozen=True, kw_only=True):
    """The settings of a model."""

    option_effects = prejudge.harmless("model")

    model: str = "echo"


class Echo(prejudge.ModelAdapter):
    """Answers with the question."""

    options = EchoOptions

    def __init__(self, options):
        self.identity = prejudge.Identity(adapter="sample-echo", version="1", model=options.model)
        self.limits = prejudge.Limits(concurrency=4)

    async def generate(self, request):
        """Say the question again."""
        if not request.messages or not all(message.parts for message in request.messages):
            raise prejudge.errors.PermanentError("there is nothing to answer")
        parts = [part for message in request.messages for part in message.parts]
        if not all(isinstance(part, prejudge.records.Text) for part in parts):
            raise prejudge.errors.PermanentError("an image cannot be said again")
        return prejudge.records.Generation(text=" ".join(part.text for part in parts))
