"""A PostgreSQL of the tests' own: made in a temporary folder, heard on a socket in it alone, stopped at the end."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import sqlalchemy as sa

USER = "prejudge"
_numbers = count()
# Nothing of a test's database has to outlive it; waiting for the disk would only make the tests slow.
_SETTINGS = {"listen_addresses": "", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def missing() -> str | None:
    """Return why PostgreSQL cannot be tested here, or None if it can."""
    if importlib.util.find_spec("psycopg") is None:
        return "the package psycopg is not installed (pip install 'psycopg[binary]')"
    if _programs() is None:
        return "PostgreSQL's initdb was not found (put its bin folder into PATH)"
    return None


def _programs() -> Path | None:
    found = shutil.which("initdb")
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return Path(found).parent if found else versions[-1].parent if versions else None


class Cluster:
    """A running PostgreSQL."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.folder = folder
        self._settings = {"listen_addresses": ""} if durable else _SETTINGS
        self._admin = sa.create_engine(self._url("postgres"), isolation_level="AUTOCOMMIT")

    def new_database(self) -> str:
        """Make an empty database and return its url."""
        name = f"test{next(_numbers)}"
        with self._admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return self._url(name).render_as_string(hide_password=False)

    def stop(self) -> None:
        """Stop the server, as at an upgrade: every session is ended."""
        self._admin.dispose()
        _call("pg_ctl", "-D", self.folder / "data", "-w", "-m", "fast", "stop")

    def start(self) -> None:
        """Start the server."""
        settings = " ".join(f"-c {name}={value!r}" for name, value in self._settings.items())
        log, options = self.folder / "log", f"{settings} -k {self.folder}"
        _call("pg_ctl", "-D", self.folder / "data", "-w", "-l", log, "-o", options, "start")

    def disconnect(self, name: str) -> None:
        """End every connection to a database."""
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        with self._admin.connect() as connection:
            connection.exec_driver_sql(end, (name,))

    def close(self) -> None:
        """Close the connection."""
        self._admin.dispose()

    def _url(self, name: str) -> sa.URL:
        query = {"host": str(self.folder)}
        return sa.URL.create("postgresql+psycopg", username=USER, password="hunter2", database=name, query=query)


@contextmanager
def cluster(*, durable: bool = False) -> Iterator[Cluster]:
    """Start a PostgreSQL and yield it; stop it at the end and remove its files. `durable`: with its own settings."""
    # A socket's path may have about 100 characters, so it is not made in pytest's deep folders.
    with tempfile.TemporaryDirectory(prefix="prejudge-pg-") as name:
        folder, data = Path(name), Path(name) / "data"
        if os.geteuid() == 0:
            shutil.chown(folder, _other_user())
        _call("initdb", "-D", data, "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        started = Cluster(folder, durable=durable)
        started.start()
        try:
            yield started
        finally:
            started.close()
            _call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


def _other_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _call(program: str, *words: str | Path) -> None:
    folder = _programs()
    assert folder is not None
    done = subprocess.run(
        [str(folder / program), *map(str, words)],
        # PostgreSQL refuses to work for root.
        user=_other_user() if os.geteuid() == 0 else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd="/",
    )
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stdout}")
