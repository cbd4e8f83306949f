"""`recollect.connect` with several addresses: nodes of one store, of which any may be gone."""

from __future__ import annotations

import json
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.server.serving import Served
from torture.serving import Server

import recollect
from recollect.cli.app import app
from recollect.errors import CommitInDoubtError, InvalidArgumentError, StoreServerError
from recollect.ledger.commits import Branch
from recollect.memory.memory import Memory
from recollect.wire.client.executor import RemoteExecutor
from recollect.wire.client.nodes import Nodes
from recollect.wire.client.transport import LostError, Patience
from recollect.wire.nodes import ranked
from recollect.wire.seen import TOKENS, SeenCommits

NAMES = [f"namespace {number}" for number in range(3000)]


def test_namespaces_are_shared_out_evenly_and_a_node_that_is_gone_moves_only_its_own() -> None:
    addresses = [f"https://node-{number}:8321" for number in range(12)]
    firsts = {name: addresses[ranked(addresses, name)[0]] for name in NAMES}
    counts = Counter(firsts.values())
    assert max(counts.values()) < 1.25 * len(NAMES) / 12
    left = addresses[:4] + addresses[5:]
    moved = {name for name in NAMES if left[ranked(left, name)[0]] != firsts[name]}
    assert moved == {name for name, node in firsts.items() if node == addresses[4]}
    back = [*reversed(addresses)]
    assert all(back[ranked(back, name)[0]] == firsts[name] for name in NAMES)


def test_the_rank_of_a_node_is_the_same_in_every_release() -> None:
    addresses = ["http://a:1", "http://b:1", "http://c:1"]
    assert [ranked(addresses, each) for each in ("default", "ana", "bob")] == RANKS


#: By `printf 'http://a:1\0default' | b2sum -l 64`, and so on: the greatest comes first.
RANKS = [[2, 0, 1], [2, 1, 0], [1, 0, 2]]


class Scripted:
    """A transport that does what a test says.

    Args:
        name: Its address.
        store: What it says of its store.
    """

    def __init__(self, name: str, store: str = "s") -> None:
        self.address = name
        self.sent: list[Any] = []
        self.fails: LostError | None = None
        self.answer: Any = {"ok": True, "result": 7}
        self._store = store

    def exchange(self, message: dict[str, Any], timeout_s: float) -> Any:
        self.sent.append(message)
        if self.fails is not None:
            raise self.fails
        return self.answer

    def store(self) -> str:
        if self.fails is not None and not self.fails.sent:
            raise LostError("it is gone", sent=False)
        return self._store

    def close(self) -> None:
        """Do nothing."""


def of(nodes: Nodes, retries: int = 3) -> Memory:
    return Memory(RemoteExecutor(nodes, Patience(60.0, retries), keys_all=True), Branch("default"))


@pytest.fixture
def pair() -> Iterator[tuple[Scripted, Scripted, Nodes]]:
    """Two nodes, first the one that is asked for the namespace "default"."""
    both = [Scripted("http://a:1"), Scripted("http://b:1")]
    first = ranked([each.address for each in both], "default")[0]
    with closing(Nodes(both)) as nodes:  # type: ignore[arg-type]
        yield both[first], both[1 - first], nodes


COUNT = {"op": "count"}
STOPPING = {"ok": False, "error": {"code": "server_busy", "message": "", "args": ["it is stopping", 1.0]}}


def test_what_a_node_did_not_get_goes_to_the_next_one(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    first.fails = LostError("refused", sent=False)
    assert nodes.exchange(COUNT, 1.0)["result"] == 7
    assert nodes.exchange(COUNT, 1.0)["result"] == 7
    assert (len(first.sent), len(second.sent)) == (0, 2)  # it was not asked again


def test_a_node_that_is_stopping_is_left_at_once(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    first.answer = STOPPING
    assert of(nodes, retries=0).execute(recollect.operations.Count()) == 7
    assert (len(first.sent), len(second.sent)) == (1, 1)


def test_a_busy_node_is_not_left(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    first.answer = {"ok": False, "error": {"code": "server_busy", "message": "", "args": ["4096 calls are waiting", 1]}}
    assert nodes.exchange(COUNT, 1.0) == first.answer
    assert second.sent == []


def test_a_write_that_may_have_happened_is_repeated_with_its_key_alone(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    first.fails = LostError("cut", sent=True)
    second.answer = {"ok": True, "result": {"parts": {"records": 3}}}
    memory = of(nodes)
    assert memory.forget_where("user = ana") == 3
    assert first.sent == second.sent
    assert first.sent[0]["in"]["key"]
    with pytest.raises(CommitInDoubtError):  # no write of a batch: it has no key
        first.fails, nodes._down = LostError("cut", sent=True), set()
        memory.snapshot("now")
    assert "snapshot" not in [each["op"] for each in second.sent]


def test_a_bulk_write_has_a_key_with_several_nodes_and_none_with_one(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, _, nodes = pair
    first.answer = {"ok": True, "result": {"results": [], "failed": []}}
    items = [{"content": f"note {number}"} for number in range(1001)]
    of(nodes).remember_all(items)
    assert first.sent[-1]["in"]["key"]
    Memory(RemoteExecutor(first, Patience(60.0, 3)), Branch("default")).remember_all(items)  # type: ignore[arg-type]
    assert "in" not in first.sent[-1] or "key" not in first.sent[-1]["in"]


def test_a_node_that_answers_again_gets_its_namespaces_back(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    first.fails = LostError("refused", sent=False)
    nodes.exchange(COUNT, 1.0)
    first.fails = None
    assert nodes._asking is not None
    nodes._asking.join(60)
    nodes.exchange(COUNT, 1.0)
    assert (len(first.sent), len(second.sent)) == (1, 1)


def test_nodes_of_different_stores_are_refused(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    second._store = "another"
    nodes.exchange(COUNT, 1.0)
    first.fails = LostError("refused", sent=False)
    with pytest.raises(InvalidArgumentError, match="has another store than the other addresses"):
        nodes.exchange(COUNT, 1.0)
    assert second.sent == []


def test_nodes_of_different_stores_are_refused_before_any_is_used(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    second._store = "another"
    with pytest.raises(InvalidArgumentError, match="has another store than http://a:1"):
        nodes.compare()
    assert first.sent == second.sent == []
    second._store = "s"  # control
    nodes.compare()
    assert not nodes._down


def test_a_node_that_is_away_when_the_client_connects_is_left_out_and_compared_later(
    pair: tuple[Scripted, Scripted, Nodes],
) -> None:
    first, second, nodes = pair
    first.fails = LostError("refused", sent=False)
    nodes.compare()
    nodes.exchange(COUNT, 1.0)
    assert (first.sent, len(second.sent)) == ([], 1)
    first.fails, first._store = None, "another"
    assert nodes._asking is not None
    nodes._asking.join(60)
    with pytest.raises(InvalidArgumentError, match="has another store than the other addresses"):
        nodes.exchange(COUNT, 1.0)


def test_a_node_that_does_not_answer_in_time_is_left_out(
    pair: tuple[Scripted, Scripted, Nodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, nodes = pair
    answers = threading.Event()
    monkeypatch.setattr("recollect.wire.client.nodes._COMPARED_S", 0.2)
    monkeypatch.setattr(first, "store", lambda: str(answers.wait(60)))
    nodes.compare()
    nodes.exchange(COUNT, 1.0)
    assert (first.sent, len(second.sent)) == ([], 1)
    problems = {state.address: state.problem for state in nodes.states()}
    assert problems == {first.address: "no answer within 0.2 s", second.address: ""}
    answers.set()


def test_nodes_that_nobody_uses_any_longer_are_not_asked() -> None:
    both = [Scripted("http://a:1"), Scripted("http://b:1")]
    nodes = Nodes(both)  # type: ignore[arg-type]
    both[0].fails = both[1].fails = LostError("refused", sent=False)
    nodes.compare()
    asking = nodes._asking
    assert asking is not None
    assert asking.is_alive(), "control"
    del nodes
    asking.join(60)
    assert not asking.is_alive()


def test_a_node_that_comes_back_with_another_store_is_refused(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    nodes.exchange(COUNT, 1.0)
    first.fails = LostError("refused", sent=False)
    nodes.exchange(COUNT, 1.0)
    first.fails, first._store = None, "another"
    assert nodes._asking is not None
    nodes._asking.join(60)
    with pytest.raises(InvalidArgumentError, match="has another store than the other addresses"):
        nodes.exchange(COUNT, 1.0)
    assert (len(first.sent), len(second.sent)) == (2, 1)


def test_late_answers_to_reads_do_not_push_out_what_was_written() -> None:
    seen = SeenCommits()
    assert seen.stated("n") == "0"
    seen.note("n", "w" * 32, wrote=True)
    for number in range(20):
        seen.note("n", f"{number:032x}", wrote=False)
    assert "w" * 32 in seen.stated("n").split(",")
    assert len(seen.stated("n").split(",")) <= TOKENS
    seen.note("m", "7", wrote=True)
    seen.note("m", "5", wrote=False)
    assert seen.stated("m") == "7"


def test_no_node_at_all_is_an_error_that_names_all(pair: tuple[Scripted, Scripted, Nodes]) -> None:
    first, second, nodes = pair
    first.fails = second.fails = LostError("refused", sent=False)
    with pytest.raises(StoreServerError, match="no node can be reached") as caught:
        of(nodes, retries=0).count()
    assert "http://a:1" in str(caught.value)
    assert "http://b:1" in str(caught.value)


@pytest.mark.parametrize("addresses", [[], ["http://a:1", "http://a:1/"], ["http://a:1", 7], b"http://a:1", 7])
def test_wrong_addresses_are_refused(addresses: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        recollect.connect(addresses)


def test_over_real_doors_each_namespace_has_its_node_and_calls_of_all_kinds_work(tmp_path: Path) -> None:
    with ExitStack() as stack:
        both = [stack.enter_context(Served(tmp_path)) for _ in range(2)]
        addresses = [f"http://{each.http[0]}:{each.http[1]}" for each in both]
        memory = stack.enter_context(recollect.connect(addresses))
        for name in NAMES[:40]:
            there = memory.namespace(name)
            with there.batch() as batch:
                batch.remember(f"a note of {name}", id="note")
            assert there.recall(f"note of {name}")[0].record.id == "note"
            assert [each.id for each in there.open_export().records] == ["note"]
        served = [set(each.served.writing()._executor.core.keeper.entries) for each in both]  # type: ignore[attr-defined]
        assert served[0].isdisjoint(served[1])
        assert {len(each) > 8 for each in served} == {True}
        for each, branches in zip(both, served, strict=True):
            of_this = addresses[both.index(each)]
            assert all(addresses[ranked(addresses, branch.namespace)[0]] == of_this for branch in branches)


@pytest.mark.files
@pytest.mark.promise("connect.nodes")
def test_a_node_that_is_killed_under_load_fails_no_call_and_loses_no_write() -> None:
    with tempfile.TemporaryDirectory(prefix="recollect-") as name, ExitStack() as stack:
        folder = Path(name)
        recollect.open(folder / "a.db", embedder="none").close()
        nodes = [stack.enter_context(Server(folder / "a.db", folder / f"s{number}")) for number in range(2)]
        addresses = [each.addresses[1] for each in nodes]
        written: list[str] = []

        def work(thread: int) -> int:
            calls = 0
            with recollect.connect(addresses) as memory:
                for number in range(50):
                    there = memory.namespace(f"n{number % 6}")
                    there.remember(f"note {number} of {thread}", id=f"{thread}-{number}")
                    written.append(f"{thread}-{number}")
                    assert there.get(f"{thread}-{number}") is not None
                    there.recall(f"note {number}")
                    calls += 3
            return calls

        with ThreadPoolExecutor(4) as threads:
            working = [threads.submit(work, each) for each in range(4)]
            while len(written) < 60:
                assert not any(each.done() for each in working)
            nodes[0].process.send_signal(signal.SIGKILL)
            assert sum(each.result() for each in working) == 600
        with recollect.open(folder / "a.db", embedder="none") as memory:
            found = [each.id for number in range(6) for each in memory.namespace(f"n{number}").find()]
            assert sorted(found) == sorted(written)
            assert memory.check() == []


def test_the_command_line_takes_several_addresses(tmp_path: Path) -> None:
    with Served(tmp_path) as one, Served(tmp_path) as two:
        db = ",".join(f"http://{each.http[0]}:{each.http[1]}" for each in (one, two))
        assert CliRunner().invoke(app, ["remember", "tea", "--db", db]).exit_code == 0
        assert "tea" in CliRunner().invoke(app, ["recall", "tea", "--db", db]).output
        done = CliRunner().invoke(app, ["recall", "tea", "--db", f"{db},"])
        assert "has a comma without an address" in done.output


def test_the_doctor_examines_each_node(tmp_path: Path) -> None:
    def nodes(db: str) -> list[tuple[str, bool]]:
        found = json.loads(CliRunner().invoke(app, ["doctor", "--db", db, "--json"]).stdout)
        return [(each["finding"], each["well"]) for each in found if each["what"] == "node"]

    with Served(tmp_path) as one, Served(tmp_path) as two:
        addresses = [f"http://{each.http[0]}:{each.http[1]}" for each in (one, two)]
        first = addresses[ranked(addresses, "default")[0]]
        asked = [f"{each}: it answers{_FIRST if each == first else ''}" for each in addresses]
        assert nodes(",".join(addresses)) == [(each, True) for each in asked]
        assert nodes(addresses[0]) == []
        gone = f"{addresses[0]},http://127.0.0.1:1"
        assert [well for _, well in nodes(gone)] == [True, False]


_FIRST = "; it is asked for namespace 'default' first"


@pytest.mark.parametrize(
    "path", ["127.0.0.1:8432", "localhost:8431,localhost:8432", "memory.example.org:80", "[::1]:8432"]
)
def test_an_address_without_its_scheme_makes_no_file(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match="looks like a server"):
        recollect.open(path)
    assert list(tmp_path.iterdir()) == []
    recollect.open(f"./{path}").close()
    recollect.open(path).close()  # control: there is such a file


@pytest.mark.parametrize(
    "path",
    ["notes:2026", "agent.db:22", "memory.v2:10", "notes.2026-08-07T10:30", "2026.08.07:12", "Ana <a@b>", "node1:1"],
)
def test_a_file_may_have_a_colon_in_its_name(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recollect.open(path).close()
    assert (tmp_path / path).exists()
