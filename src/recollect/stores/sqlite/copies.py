"""Copies of a store in its folder that still have what was erased: backups, replaced and rescued stores.

Another process reads them. When a process closes a file, the system releases all locks that it has on that file, also
those of another library: reading the files here could break an SQLite database that the program has open.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Container, Sequence
from contextlib import closing
from urllib.parse import quote

import apsw

from recollect.ledger.commits import Branch
from recollect.stores.sealing.keys import PAGES_OF_STORE, Unlocked
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sqlite.encryption import is_encrypted, is_encrypted_other
from recollect.stores.sqlite.header import has_wal
from recollect.stores.sqlite.schema import APPLICATION_ID, ENCRYPTED_ID
from recollect.stores.sqlite_base.errors import SQLITE_ERRORS
from recollect.stores.sqlite_base.sealed import vfs_of

#: The size of an SQLite file is a multiple of this.
_LEAST_PAGE = 512
_TIMEOUT_S = 600
_CODE = f"""
import sys
sys.path[:] = sys.argv[1:]
from {__name__} import search
search()
"""


def copies_with(
    path: str, branch: Branch, versions: Sequence[bytes], uuid: str, keys: Unlocked | None = None
) -> tuple[str, ...]:
    """Return the stores in the folder of a store, other than itself, that have the payload of one of these versions.

    What cannot be read completely is among them: a corrupt store, or one with a WAL.

    Args:
        path: The store.
        branch: The branch that the versions belong to.
        uuid: The uuid of the store. Encrypted stores with the key file of another one are no copies of it.
        keys: The data keys of an encrypted store, with which its encrypted copies are read.

    Cost:
        If there is a file that may be a store, starts Python to read it.
    """
    import subprocess  # with the copies, so that what erases nothing does not load it

    found = _candidates(path) if versions else []
    if not found or found == [os.path.dirname(path)]:
        return tuple(found)
    request = {
        "paths": found,
        "namespace": branch.namespace,
        "versions": [each.hex() for each in versions],
        "key": None if keys is None else keys.key(PAGES_OF_STORE).hex(),  # through a pipe
        "uuid": uuid,
    }
    try:
        name = os.path.basename(sys.executable or "").lower()
        if getattr(sys, "frozen", False) or not name.startswith("python"):
            return tuple(found)  # the program is no Python interpreter that could be started
        folders = [os.path.abspath(each) for each in sys.path if isinstance(each, str)]
        done = subprocess.run(
            [sys.executable, "-c", _CODE, *folders],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
        return tuple(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return tuple(found)


def _candidates(path: str) -> list[str]:
    """Return the files next to a store that may be SQLite files, by their sizes; the folder if it cannot be listed."""
    own = {os.path.realpath(path) + suffix for suffix in ("", "-wal", "-shm")}
    folder = os.path.dirname(path)
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if _may_be_store(entry, own))
    except OSError:
        return [folder]


def _may_be_store(entry: os.DirEntry[str], own: Container[str]) -> bool:
    try:
        if not entry.is_file(follow_symlinks=False) or os.path.realpath(entry.path) in own:
            return False
        size = entry.stat().st_size
    except FileNotFoundError:
        return False
    return size > 0 and size % _LEAST_PAGE == 0 and not entry.name.endswith(("-wal", "-shm", "-journal"))


def search() -> None:
    """Answer the request of `copies_with` on the standard input. Run in the process that it starts."""
    request = json.load(sys.stdin)
    versions = [bytes.fromhex(each) for each in request["versions"]]
    cipher = PageCipher(bytes.fromhex(request["key"])) if request["key"] else None
    found = [
        each
        for each in request["paths"]
        if not is_encrypted_other(each, request["uuid"]) and _has_any(each, request["namespace"], versions, cipher)
    ]
    json.dump(found, sys.stdout)


def _has_any(path: str, namespace: str, versions: Sequence[bytes], cipher: PageCipher | None) -> bool:
    """Return whether a file is a store with one of these payloads, or one that cannot be read."""
    name = f"file:{quote(path)}?immutable=1"  # SQLite creates no files next to it, and reads no WAL
    sql = (
        "SELECT 1 FROM versions v JOIN namespaces n ON n.number = v.namespace "
        "WHERE n.name = ? AND v.hash = ? AND v.payload IS NOT NULL"
    )
    is_store = is_encrypted(path)
    vfs = vfs_of(cipher) if cipher is not None and is_store else None
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        with closing(apsw.Connection(name, flags=flags, vfs=None if vfs is None else vfs.name)) as connection:
            found = connection.execute("PRAGMA application_id").fetchall()
            is_store = found in ([(APPLICATION_ID,)], [(ENCRYPTED_ID,)])
            if not is_store or has_wal(path):
                return is_store
            return any(connection.execute(sql, (namespace, each)).fetchone() for each in versions)
    except SQLITE_ERRORS:
        return is_store
