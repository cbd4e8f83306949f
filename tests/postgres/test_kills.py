"""Nothing acknowledged is lost when the server or its nodes are killed: the log has it, without a gap."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import recollect
from recollect.errors import CommitInDoubtError, RecollectError
from recollect.ledger.commits import Branch
from recollect.testing.loopback import core_of
from recollect.testing.postgres import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]
#: A node: it remembers notes until it is killed, and prints the id of each that was acknowledged.
NODE = """
import sys, recollect
address, name = sys.argv[1:]
with recollect.open(address, "shared", embedder="none") as memory:
    for number in range(100_000):
        memory.remember(f"note {name} {number}", id=f"{name} {number}")
        print(f"{name} {number}", flush=True)
"""


def lost(address: str, namespace: str, acknowledged: set[str]) -> set[str]:
    """Return the acknowledged ids that are not stored, after checking the rest of the store."""
    with recollect.open(address, namespace, embedder="none") as memory:
        assert memory.check() == []
        found = {record.id for record in memory.find(limit=1_000_000)}
        with core_of(memory).store.read() as view:
            seqs = [commit.seq for commit in view.commits(Branch(namespace))]
        assert seqs == list(range(1, len(seqs) + 1))
    return acknowledged - found


def written_while_killed(server: PostgresServer, address: str, namespace: str, kills: int) -> tuple[set[str], set[str]]:
    """Write in four threads while the server is killed again and again; return what was said to be stored, and not."""
    stored: set[str] = set()
    refused: set[str] = set()
    over = threading.Event()
    written = threading.Semaphore(0)

    def write(name: int) -> None:
        with recollect.open(address, namespace, embedder="none", timeout=20) as memory:
            number = 0
            while not over.is_set():
                record_id, number = f"{name} {number}", number + 1
                try:
                    memory.remember(f"note {record_id}", id=record_id)
                    stored.add(record_id)
                    written.release()
                except CommitInDoubtError:
                    pass
                except RecollectError:
                    refused.add(record_id)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        assert all(written.acquire(timeout=60) for _ in range(20))
        server.kill()
        server.start()
    over.set()
    for thread in threads:
        thread.join()
    return stored, refused


@pytest.mark.parametrize("kills", [2, 50])
def test_a_killed_server_keeps_what_was_acknowledged(kills: int, server: PostgresServer, tmp_path: Path) -> None:
    address = f"{server.dsn}&cache={tmp_path}"
    namespace = f"killed {kills} times"  # of its own: the server is that of the other tests, too
    stored, refused = written_while_killed(server, address, namespace, kills)
    assert len(stored) > 20 * kills
    assert lost(address, namespace, stored) == set()
    assert lost(address, namespace, refused) == refused, "what was said not to be stored is not there"


@pytest.mark.parametrize("kills", [6, 200])
def test_killed_nodes_lose_nothing_that_they_acknowledged(kills: int, server: PostgresServer, tmp_path: Path) -> None:
    address = f"{server.dsn}&cache={tmp_path}"
    random_ = random.Random(kills)
    acknowledged: set[str] = set()
    for first in range(0, kills, 3):
        nodes = [
            subprocess.Popen(
                [sys.executable, "-c", NODE, address, f"{kills} {first + number}"], stdout=subprocess.PIPE, text=True
            )
            for number in range(3)
        ]
        for node in nodes:
            assert node.stdout is not None
            lines = [node.stdout.readline() for _ in range(random_.randint(1, 40))]
            os.kill(node.pid, signal.SIGKILL)
            lines += node.stdout.read().splitlines(keepends=True)
            node.wait()
            node.stdout.close()
            acknowledged |= {line.strip() for line in lines if line.endswith("\n")}
    assert len(acknowledged) > kills
    assert lost(address, "shared", acknowledged) == set()


def test_a_loss_is_noticed(server: PostgresServer, tmp_path: Path) -> None:
    address = f"{server.dsn}&cache={tmp_path}"
    with recollect.open(address, "lost", embedder="none") as memory:
        memory.remember("note", id="there")
    assert lost(address, "lost", {"there", "gone"}) == {"gone"}
