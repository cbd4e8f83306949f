"""The hash of a log entry covers everything that its commit states, as docs/proofs.md defines it."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ledger.commits import CAUSES, Change, Commit
from recollect.ledger.entries import entry_hash, entry_of
from recollect.ledger.merkle import PUBLIC_KEY, Root

versions = st.none() | st.binary(min_size=32, max_size=32)
names = st.text(max_size=200)
changes = st.builds(Change, names, versions, versions, st.sampled_from([*CAUSES, "a cause of a later release"]))
commits = st.builds(
    Commit,
    namespace=names,
    branch=names,
    seq=st.integers(1, 2**63 - 1),
    parents=st.lists(st.tuples(names, st.integers(0, 2**63 - 1)), max_size=3).map(tuple),
    micros=st.integers(-(2**63), 2**63 - 1),
    actor=st.none() | names,
    reason=st.none() | names,
    root=st.builds(Root, st.binary(min_size=32, max_size=32), st.integers(0, 9)),
    changes=st.lists(changes, max_size=3).map(tuple),
)

# The definition once more, with hashlib and nothing else.


def sha(domain: str, *parts: bytes) -> bytes:
    return hashlib.sha256(f"recollect.{domain}.1\0".encode() + b"".join(parts)).digest()


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def lp(text: str) -> bytes:
    return varint(len(text.encode())) + text.encode()


def independent(commit: Commit, key: bytes) -> bytes:
    def note(name: str, text: str | None) -> bytes:
        if text is None:
            return b"\0"
        place = lp(name) + struct.pack(">Qq", commit.seq, commit.micros)
        content = b"recollect.note-salt.1\0" + place + hashlib.sha256(text.encode()).digest()
        return b"\1" + sha("note", hmac.new(key, content, "sha256").digest(), text.encode())

    def state(version: bytes | None) -> bytes:
        return b"\0" if version is None else b"\1" + version

    changed = [
        sha("path", each.id.encode()) + state(each.before) + state(each.after) + lp(each.cause)
        for each in commit.changes
    ]
    return sha(
        "entry",
        struct.pack(">Q", commit.seq),
        varint(len(commit.parents)),
        *(lp(branch) + struct.pack(">Q", seq) for branch, seq, *_ in commit.parents),
        struct.pack(">q", commit.micros),
        note("actor", commit.actor),
        note("reason", commit.reason),
        commit.root.hash,
        sha("changes", *changed),
    )


@given(commit=commits, key=st.just(PUBLIC_KEY) | st.binary(min_size=1, max_size=100))
def test_an_entry_is_the_hash_of_what_the_page_says(commit: Commit, key: bytes) -> None:
    assert entry_hash(commit, key) == independent(commit, key)


ONE = Commit(
    namespace="default",
    branch="main",
    seq=7,
    parents=(("main", 6),),
    micros=1_767_225_600_000_000,
    actor="importer",
    reason="spring clean",
    root=Root(b"r" * 32, 3),
    changes=(Change("a", None, b"v" * 32, "written"), Change("b", b"w" * 32, None, "forgotten")),
)


@pytest.mark.parametrize(
    "changed",
    [
        {"seq": 8},
        {"parents": ()},
        {"parents": (("main", 5),)},
        {"parents": (("other", 6),)},
        {"parents": (("main", 6), ("main", 6))},
        {"micros": 1_767_225_600_000_001},
        {"actor": None},
        {"actor": "spring clean", "reason": "importer"},
        {"reason": "spring cleaning"},
        {"reason": ""},
        {"root": Root(b"s" * 32, 3)},
        {"changes": ONE.changes[:1]},
        {"changes": ONE.changes[::-1]},
        {"changes": (ONE.changes[0], ONE.changes[1]._replace(cause="expired"))},
        {"changes": (ONE.changes[0]._replace(id="c"), ONE.changes[1])},
        {"changes": (ONE.changes[0]._replace(before=b"v" * 32, after=None), ONE.changes[1])},
    ],
)
def test_everything_that_a_commit_states_changes_its_entry(changed: dict[str, Any]) -> None:
    assert entry_hash(replace(ONE, **changed)) != entry_hash(ONE)


def test_where_its_pages_are_and_which_namespace_it_is_of_does_not() -> None:
    assert entry_hash(replace(ONE, root=Root(ONE.root.hash, 99), namespace="other", branch="fork")) == entry_hash(ONE)


def test_a_redacted_actor_and_reason_leave_the_entry_as_it_is() -> None:
    entry = entry_of(ONE, b"a private key")
    assert entry.actor is not None
    assert entry.reason is not None
    redacted = replace(ONE, actor=None, reason=None)
    notes = {"actor": entry.actor, "reason": entry.reason}
    assert entry_hash(redacted, b"a private key", notes) == entry_hash(ONE, b"a private key")
    assert entry_hash(redacted, b"a private key", {"actor": entry.actor}) != entry_hash(ONE, b"a private key")


def test_a_commitment_cannot_be_confirmed_without_the_key_nor_with_that_of_another_commit() -> None:
    entry = entry_of(ONE, b"a private key")
    for guess in (entry_of(ONE), entry_of(ONE, b"another key")):
        assert guess.reason != entry.reason
    for other in (replace(ONE, seq=8), replace(ONE, micros=0)):
        assert entry_of(other, b"a private key").reason != entry.reason
    assert entry_of(replace(ONE, actor="x", reason="x")).actor != entry_of(replace(ONE, actor="x", reason="x")).reason
