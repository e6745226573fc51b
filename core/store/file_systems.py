"""Whether a folder is on a network file system, where the locks of SQLite may fail and its log cannot be shared."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

LOG = logging.getLogger(__name__)
NETWORK = frozenset(
    "9p acfs afpfs afs beegfs ceph cifs coda davfs fhgfs fuse.ceph fuse.davfs2 fuse.gcsfuse fuse.glusterfs "
    "fuse.gvfsd-fuse fuse.rclone fuse.s3fs fuse.sshfs fuse_sshfs glusterfs gpfs lustre macfuse ncpfs nfs nfs3 nfs4 "
    "orangefs osxfuse panfs pvfs2 smb2 smb3 smbfs webdav".split()
)
"""Types of file systems, as tables of mounts name them."""
REMOTE_DRIVE = 4
"""What Windows calls a drive of another machine."""
_MOUNTINFO = re.compile(r"^(?:\S+ ){4}(\S+) .*? - (\S+) ", re.MULTILINE)
_MOUNT = re.compile(r"^.* on (.+) \(([^,)]+)", re.MULTILINE)
_warned: set[str] = set()


def network_type(table: str, folder: str) -> str | None:
    """Return the type of the network file system of a folder; None if it is a local one, or unknown.

    Args:
        table: `/proc/self/mountinfo` of Linux, or what the command `mount` writes on macOS.
        folder: an absolute path without symbolic links.
    """
    mounts = [(_unescaped(point), kind) for point, kind in _MOUNTINFO.findall(table) or _MOUNT.findall(table)]
    over = [(len(point), number, kind) for number, (point, kind) in enumerate(mounts) if _holds(point, folder)]
    # Of two mounts at one place, the later hides the earlier.
    kind = max(over)[2] if over else ""
    return kind if kind in NETWORK else None


def network_type_of(path: Path) -> str | None:
    """Return the type of the network file system that a file is on, or will be; None: none is known."""
    folder = os.path.realpath(path.parent)
    if sys.platform == "win32":
        return _of_windows(folder)
    try:
        if sys.platform == "darwin":
            table = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=True, timeout=5).stdout
        else:
            table = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except (OSError, subprocess.SubprocessError):
        return None
    return network_type(table, folder)


def warn_of_network(path: Path) -> None:
    """Warn, once for a store and command, if an SQLite file is on a network file system."""
    name = os.path.abspath(path)
    if name in _warned or multiprocessing.parent_process() is not None:
        return
    _warned.add(name)
    if (kind := network_type_of(path)) is not None:
        LOG.warning("%s", describe_network(str(path), kind))


def describe_network(store: str, kind: str) -> str:
    """Return what to do about a store on a network file system."""
    return (
        f"the store {store} is on a network file system ({kind}), where the locks of SQLite may fail and two processes "
        "can damage it. Keep it in a folder of this machine, or use PostgreSQL: --store postgresql+psycopg://..."
    )


def _holds(point: str, folder: str) -> bool:
    return folder == point or folder.startswith(point.rstrip("/") + "/")


def _unescaped(text: str) -> str:
    """Return a path of a table, where spaces and the like are written as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _of_windows(folder: str) -> str | None:
    drive = os.path.splitdrive(folder)[0]
    if drive.startswith(("\\\\", "//")) and not drive[2:].startswith(("?", ".")):
        return "UNC"
    import ctypes  # only Windows has `windll`

    kind = ctypes.windll.kernel32.GetDriveTypeW(f"{drive}\\")  # type: ignore[attr-defined, unused-ignore]
    return "network drive" if kind == REMOTE_DRIVE else None


__all__ = ["describe_network", "network_type", "network_type_of", "warn_of_network"]
