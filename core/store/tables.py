"""The store's tables, as they are now. Migrations carry their own frozen copies."""

from __future__ import annotations

from sqlalchemy import Index, LargeBinary, Text, UniqueConstraint
from sqlmodel import Field, SQLModel


class Migration(SQLModel, table=True):
    """A migration that was applied."""

    number: int = Field(primary_key=True)
    name: str = Field(sa_type=Text)
    applied: float
    """Seconds since 1970, as every time in the store."""


class Model(SQLModel, table=True):
    """A model somebody asked."""

    id: int | None = Field(default=None, primary_key=True)
    digest: bytes = Field(sa_type=LargeBinary, unique=True)
    """sha256 of `identity`; a part of every key."""
    identity: str = Field(sa_type=Text)
    """Canonical JSON of the identity record."""
    created: float


class Part(SQLModel, table=True):
    """A text that many requests repeat, stored once."""

    id: int | None = Field(default=None, primary_key=True)
    digest: bytes = Field(sa_type=LargeBinary, unique=True)
    """sha256 of `literal`."""
    literal: str = Field(sa_type=Text)
    """The text as JSON, quotes included."""


class Exchange(SQLModel, table=True):
    """A request and its response. Never changed, never deleted by a run."""

    __table_args__ = (UniqueConstraint("key", "generation"),)

    id: int | None = Field(default=None, primary_key=True)
    key: bytes = Field(sa_type=LargeBinary)
    """sha256 of key version, identity digest and request."""
    generation: int = 0
    """0 for the first answer; one more each time `refresh` asked anew. Look-ups take the highest.

    Below 0: an answer that came from another store or a bundle to a key that was answered here already.
    """
    model_id: int = Field(foreign_key="model.id")
    operation: str = Field(sa_type=Text)
    request: str = Field(sa_type=Text)
    """Canonical JSON, in which `{"part": ID}` stands for a text of the table `part`."""
    response: str = Field(sa_type=Text)
    """Canonical JSON."""
    status: str = Field(sa_type=Text)
    """`ok`, `refused` or `filtered`."""
    input_tokens: int
    output_tokens: int
    latency: float
    """Seconds the call took, shared by all requests of its batch."""
    created: float


class Blob(SQLModel, table=True):
    """Bytes by their sha256: images drawn and images shown."""

    sha256: str = Field(primary_key=True, sa_type=Text)
    media_type: str = Field(sa_type=Text)
    data: bytes = Field(sa_type=LargeBinary)
    created: float


class Run(SQLModel, table=True):
    """One run of a study."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(sa_type=Text, unique=True)
    """What a person calls it by."""
    study: str = Field(sa_type=Text)
    state: str = Field(sa_type=Text)
    """`running`, `finished`, `interrupted` or `failed`."""
    manifest: str = Field(sa_type=Text)
    """Canonical JSON: study, options, identities, versions, counts."""
    started: float
    finished: float | None = None
    """NULL until it ends."""


class RunTrial(SQLModel, table=True):
    """A trial of a run, and the exchange that answers it."""

    __tablename__ = "run_trial"
    __table_args__ = (Index("ix_run_trial_exchange", "exchange_id"),)

    run_id: int = Field(primary_key=True, foreign_key="run.id")
    stage: str = Field(primary_key=True, sa_type=Text)
    ordinal: int = Field(primary_key=True)
    """Place in the plan, from 0."""
    trial: str = Field(sa_type=Text)
    factors: str = Field(sa_type=Text)
    """JSON object."""
    key: bytes = Field(sa_type=LargeBinary)
    exchange_id: int | None = Field(default=None, foreign_key="exchange.id")
    """NULL if the model did not answer: see `attempt`."""


class Attempt(SQLModel, table=True):
    """A call that failed. Never an answer."""

    __table_args__ = (Index("ix_attempt_key", "key"),)

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    key: bytes = Field(sa_type=LargeBinary)
    decision: str = Field(sa_type=Text)
    """`rate_limit`, `transient`, `permanent` or `authentication`."""
    message: str = Field(sa_type=Text)
    created: float


class Worker(SQLModel, table=True):
    """A process that asks models just now. Gone when it ends."""

    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True)
    """Never given twice."""
    host: str = Field(sa_type=Text)
    pid: int
    """Its number on that host."""
    seen: float
    """When it last said that it lives."""
    met: int
    """The newest worker it has told its claims; a newcomer waits for that."""


class Claim(SQLModel, table=True):
    """A key that a worker is asking, so that no other does. Empty while no two processes ask at once."""

    key: bytes = Field(primary_key=True, sa_type=LargeBinary)
    worker_id: int = Field(foreign_key="worker.id")
