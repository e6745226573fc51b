"""The tables of the store."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, MetaData, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

WIDE: Any = BigInteger().with_variant(Integer(), "sqlite")
"""An id of 64 bits: SQLite numbers rows only by a column of the type INTEGER, which has 64 bits there."""


class StoreTable(SQLModel):
    """Base of the tables: their metadata has no table of another program that uses SQLModel."""

    metadata = MetaData()


class Migration(StoreTable, table=True):
    """The schema of the store, by its number."""

    number: int = Field(primary_key=True)
    name: str = Field(sa_type=Text)
    applied: float
    """When the tables were created: seconds since 1970, as every time in the store."""


class Model(StoreTable, table=True):
    """A model that was asked."""

    id: int | None = Field(default=None, primary_key=True)
    digest: bytes = Field(sa_type=LargeBinary, unique=True)
    """sha256 of `identity`; a part of every key."""
    identity: str = Field(sa_type=Text)
    """Canonical JSON of the identity record."""
    created: float


class Part(StoreTable, table=True):
    """A text that many requests repeat, stored once."""

    id: int | None = Field(default=None, sa_type=WIDE, primary_key=True)
    digest: bytes = Field(sa_type=LargeBinary, unique=True)
    """sha256 of `literal`."""
    literal: str = Field(sa_type=Text)
    """The text as JSON, quotes included."""


class Exchange(StoreTable, table=True):
    """A request and its response. Never changed, never deleted by a run."""

    __table_args__ = (UniqueConstraint("key", "generation"),)

    id: int | None = Field(default=None, sa_type=WIDE, primary_key=True)
    key: bytes = Field(sa_type=LargeBinary)
    """sha256 of key version, identity digest and request."""
    generation: int = 0
    """0 for the first answer; increased by one with each `refresh`. Look-ups use the highest.

    Below 0: an answer from another store or a bundle to a key that already had an answer.
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
    digest: bytes | None = Field(default=None, sa_type=LargeBinary)
    """See `evidence.answer_digest`. Every row is stored with it: one without is damaged."""


class Renewal(StoreTable, table=True):
    """An answer that was asked for because of what the one before it was, not whatever that was."""

    exchange_id: int = Field(sa_type=WIDE, primary_key=True, foreign_key="exchange.id")
    outcome: str = Field(sa_type=Text)
    """What the answer before was: `unreadable`, `refused`, `filtered` or `empty`."""


class Blob(StoreTable, table=True):
    """Bytes by their sha256: generated images and input images."""

    sha256: str = Field(primary_key=True, sa_type=Text)
    media_type: str = Field(sa_type=Text)
    data: bytes = Field(sa_type=LargeBinary)
    created: float


class Run(StoreTable, table=True):
    """One run of a study."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(sa_type=Text, unique=True)
    """Its name for users."""
    study: str = Field(sa_type=Text)
    state: str = Field(sa_type=Text)
    """`running`, `finished`, `interrupted`, `failed` or `timed`."""
    manifest: str = Field(sa_type=Text)
    """Canonical JSON: study, options, identities, versions, counts."""
    started: float
    finished: float | None = None
    """NULL until the run ends."""
    head: bytes | None = Field(default=None, sa_type=LargeBinary)
    """See `evidence.run_head`. NULL until the run ends."""
    record: bytes | None = Field(default=None, sa_type=LargeBinary)
    """See `evidence.record_digest`."""
    local: str | None = Field(default=None, sa_type=Text)
    """The manifest with the paths of this machine, if `manifest` has their names only. Never handed on."""


class Signature(StoreTable, table=True):
    """A signature of a run, by `ssh-keygen -Y sign`. It is no part of the run's record."""

    __table_args__ = (Index("ix_signature_run", "run_id"),)

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    statement: str = Field(sa_type=Text)
    """What was signed, see `signatures.statement_of`."""
    signature: str = Field(sa_type=Text)
    """In SSH's armoured format."""


class RunTrial(StoreTable, table=True):
    """A trial of a run, and the exchange that answers it."""

    __tablename__ = "run_trial"
    __table_args__ = (Index("ix_run_trial_exchange", "exchange_id"),)

    run_id: int = Field(primary_key=True, foreign_key="run.id")
    stage: str = Field(primary_key=True, sa_type=Text)
    ordinal: int = Field(primary_key=True)
    """Index in the plan, from 0."""
    trial: str = Field(sa_type=Text)
    factors: str = Field(sa_type=Text)
    """JSON object."""
    key: bytes = Field(sa_type=LargeBinary)
    exchange_id: int | None = Field(default=None, sa_type=WIDE, foreign_key="exchange.id")
    """NULL if the model did not answer; see the table `attempt`."""
    digest: bytes | None = Field(default=None, sa_type=LargeBinary)
    """See `evidence.trial_digest`."""


class Attempt(StoreTable, table=True):
    """A call that failed. Never an answer."""

    __table_args__ = (Index("ix_attempt_key", "key"),)

    id: int | None = Field(default=None, sa_type=WIDE, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    key: bytes = Field(sa_type=LargeBinary)
    decision: str = Field(sa_type=Text)
    """`rate_limit`, `transient`, `permanent` or `authentication`."""
    message: str = Field(sa_type=Text)
    created: float


class Worker(StoreTable, table=True):
    """A process that is asking models. Removed when it ends."""

    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, sa_type=WIDE, primary_key=True)
    """Never used twice."""
    host: str = Field(sa_type=Text)
    pid: int
    """Its process id on that host."""
    seen: float
    """Time of its last update."""
    met: int = Field(sa_type=WIDE)
    """The newest worker for which it has written its claims; a new worker waits for this."""
    endpoints: str | None = Field(default=None, sa_type=Text)
    """Digests of the endpoints that it asks, with spaces between."""


class Holder(StoreTable, table=True):
    """The process that is at work on a run. Removed when the run ends; never handed on."""

    run_id: int = Field(primary_key=True, foreign_key="run.id")
    mark: str = Field(sa_type=Text)
    """Random, new each time a run is begun or resumed."""
    host: str = Field(sa_type=Text)
    """Digest of the machine and its boot."""
    pid: int
    """Its process id on that host."""
    born: str = Field(sa_type=Text)
    """When it started, as the system writes it, so that a later process of the same id is told apart."""
    seen: float
    """Time of its last update."""


class Claim(StoreTable, table=True):
    """A key that a worker is asking, so that no other does. Empty while only one process asks."""

    key: bytes = Field(primary_key=True, sa_type=LargeBinary)
    worker_id: int = Field(sa_type=WIDE, foreign_key="worker.id")


class Batch(StoreTable, table=True):
    """Requests that are, or were, with a provider as one batch. Recorded before the provider hears of it."""

    id: int | None = Field(default=None, primary_key=True)
    mark: str = Field(sa_type=Text, unique=True)
    """Random; the provider keeps it with the batch, by which one is found whose name was never received."""
    model_id: int = Field(foreign_key="model.id")
    name: str = Field(sa_type=Text)
    """The model's name in the catalogue, by which `cache batches` reaches it."""
    operation: str = Field(sa_type=Text)
    run: str = Field(sa_type=Text)
    """Name of the run that drafted it."""
    stage: str = Field(sa_type=Text)
    state: str = Field(sa_type=Text)
    """`drafted`, `uploaded`, `submitted`, `running`, `ended`; at last `collected` or `lost`."""
    outcome: str = Field(sa_type=Text)
    """How it ended: `ended`, `expired`, `cancelled`, `invalid`, `missing`; empty before."""
    problem: str = Field(sa_type=Text)
    file: str = Field(sa_type=Text)
    """The provider's name of the uploaded lines; empty before, or where there is none."""
    provider_id: str = Field(sa_type=Text)
    """The provider's name of the batch; empty before it is known."""
    worker_id: int = Field(sa_type=WIDE)
    """The process that hands it in; another may take over when that one is dead."""
    items: int
    size: int = Field(sa_type=BigInteger)
    """Bytes of all lines."""
    created: float
    tried: float | None = None
    """When it was first handed in. Set, without a `provider_id`: whether the provider has it is not known."""
    submitted: float | None = None
    finished: float | None = None
    """When it was collected or lost."""


class BatchItem(StoreTable, table=True):
    """A request of a batch. While it is `open`, no process asks its key."""

    __tablename__ = "batch_item"
    __table_args__ = (Index("ix_batch_item_key", "key"), Index("ix_batch_item_exchange", "exchange_id"))

    batch_id: int = Field(primary_key=True, foreign_key="batch.id")
    key: bytes = Field(primary_key=True, sa_type=LargeBinary)
    """The custom id, in hexadecimal."""
    state: str = Field(sa_type=Text)
    """`open`, `ok`, `refused`, `errored`, `expired`, `cancelled` or `lost`."""
    request: str | None = Field(default=None, sa_type=Text)
    """Canonical JSON, while it is open: what was asked can be read by whoever is there when the batch ends."""
    anew: str | None = Field(default=None, sa_type=Text)
    """Why a stored answer is asked for anew, see `renewal`; NULL if there was none."""
    problem: str | None = Field(default=None, sa_type=Text)
    exchange_id: int | None = Field(default=None, sa_type=WIDE, foreign_key="exchange.id")
    """The answer."""
    single: str | None = Field(default=None, sa_type=Text)
    """What a call of its own was answered, canonical JSON, for the few that are asked both ways. Never an answer."""


class Tally(StoreTable, table=True):
    """What a table holds, so that rows that were removed or added are noticed; see `evidence.weigh`."""

    kind: str = Field(primary_key=True, sa_type=Text)
    """A table."""
    rows: int = Field(sa_type=BigInteger)
    weight: int = Field(sa_type=BigInteger)
    """Sum of the rows' weights."""


class Damage(StoreTable, table=True):
    """A row that `cache repair` could not repair."""

    id: int | None = Field(default=None, primary_key=True)
    exchange_id: int | None = Field(default=None, sa_type=WIDE)
    """The answer that is damaged, or whose image or model is."""
    run_id: int | None = None
    """The run whose manifest, trials or failures are damaged."""
    place: str = Field(sa_type=Text)
    problem: str = Field(sa_type=Text)
    found: float
