"""A store on a network file system is told from one on a disk of this machine, and the user is warned once."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from prejudge.core.doctor.installation import look_around
from prejudge.core.store import Store, file_systems
from prejudge.core.store.file_systems import network_type, network_type_of

LINUX = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw,nosuid - proc proc rw
40 21 0:45 / /home rw,relatime shared:7 master:2 - nfs4 server:/export/home rw,vers=4.2,addr=10.0.0.1
41 40 8:2 / /home/ann/scratch rw - xfs /dev/sdb1 rw
42 21 0:50 / /mnt/my\\040share rw - cifs //server/share rw
43 21 0:51 / /mnt/hidden rw - nfs server:/x rw
44 21 8:3 / /mnt/hidden rw - ext4 /dev/sdc1 rw
45 21 0:52 / /mnt/cloud rw,nosuid - fuse.sshfs ann@server:/ rw,user_id=0
46 21 0:53 / /lustre rw - lustre 10.0.0.2@tcp:/work rw
"""
MAC = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
//ann@server/share on /Volumes/my share (smbfs, nodev, nosuid, mounted by ann)
server:/export on /Volumes/export (nfs, nodev)
/dev/disk4 on /Volumes/export/local (hfs, local)
"""


@pytest.mark.parametrize(
    ("table", "folder", "kind"),
    [
        (LINUX, "/home/ann", "nfs4"),
        (LINUX, "/home", "nfs4"),
        (LINUX, "/homestead", None),
        (LINUX, "/", None),
        (LINUX, "/home/ann/scratch/runs", None),
        (LINUX, "/mnt/my share/a", "cifs"),
        (LINUX, "/mnt/hidden", None),
        (LINUX, "/mnt/cloud", "fuse.sshfs"),
        (LINUX, "/lustre/group/ann", "lustre"),
        (MAC, "/Users/ann", None),
        (MAC, "/Volumes/my share/a", "smbfs"),
        (MAC, "/Volumes/export", "nfs"),
        (MAC, "/Volumes/export/local/a", None),
        ("", "/home", None),
    ],
)
def test_type_is_that_of_the_nearest_mount(table, folder, kind):
    assert network_type(table, folder) == kind


def test_folder_of_this_test_is_looked_up(tmp_path):
    assert network_type_of(tmp_path / "s.db") in {None, *file_systems.NETWORK}


@pytest.fixture
def on_nfs(monkeypatch):
    monkeypatch.setattr(file_systems, "network_type_of", lambda path: "nfs4")
    monkeypatch.setattr("prejudge.core.doctor.installation.network_type_of", lambda path: "nfs4")
    monkeypatch.setattr(file_systems, "_warned", set())


def test_user_is_warned_once(on_nfs, tmp_path, caplog):
    for _ in range(2):
        with Store(tmp_path / "s.db"), Store(tmp_path / "s.db", writable=False):
            pass
    (record,) = (record for record in caplog.records if "network file system (nfs4)" in record.getMessage())
    assert record.levelno == logging.WARNING and "PostgreSQL" in record.getMessage()


def test_doctor_says_so(on_nfs, tmp_path):
    facts = look_around(SimpleNamespace(loaded=[], problems=[]), str(tmp_path / "new.db"))
    assert [fact.wrong for fact in facts if "nfs4" in fact.detail] == [False]
