"""No file confirms a guess of a text that was erased, redacted or refused: no digest of it is left anywhere.

Every file is searched for the digests that an attacker who guesses would try: plain ones of many kinds, and HMACs
under the key that is public by default, of the text and of each JSON form of the write that had it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.engine import answers
from recollect.engine.index.document_of import text_of
from recollect.errors import RejectedError
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.models.embedding.hashed import Hashed
from recollect.operations import AddMessages, Operation, Remember, RememberAll, Update
from recollect.records.messages import Turn
from recollect.records.record import Record
from recollect.testing.loopback import core_of

PIN = "Ana's PIN is 4821"
PASSWORD = "the database password is hunter2 of Ana"
NARRATION = "Let me check the file now."
PRIVATE = b"a private key of a store"
HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
#: What stands before a text where this project hashes it with a key.
PREFIXES = (b"", b"recollect.given.1\0", b"recollect.vector.1\0", b"recollect.record.1\0")


def forms(text: str, operations: Sequence[Operation], user: str | None) -> Iterator[bytes]:
    """Yield what may be hashed: the text, by itself and in a record, and the JSON forms of the writes that had it."""
    values: list[Any] = [text, {"content": text}, {"role": "user", "content": text}, [user, None, None, text]]
    for operation in operations:
        values += [operation.to_json(), [operation.to_json()]]
    record = Record(id="a", content=text, user=user)
    values += [record.to_json(), [user, None, None, text_of(record)]]
    yield text.encode()
    yield from (text.lower().encode(), text.strip().encode(), text.encode("utf-16-le"), record.to_bytes())
    for value in values:
        for separators in ((",", ":"), (", ", ": ")):
            for sorts in (False, True):
                yield json.dumps(value, separators=separators, sort_keys=sorts).encode()


def digests(data: bytes) -> Iterator[bytes]:
    """Yield the digests of some bytes, at least eight bytes of each, and the checksum in hex."""
    for prefix in PREFIXES:
        for name in HASHES:
            yield hashlib.new(name, prefix + data).digest()
            yield hmac.new(PUBLIC_KEY, prefix + data, name).digest()
            # A digest of a digest, as that under which vectors are stored.
            yield hmac.new(PUBLIC_KEY, prefix + hashlib.sha256(data).digest(), name).digest()
    yield hashlib.blake2b(data, digest_size=16).digest()
    yield hashlib.blake2b(data, digest_size=32).digest()


def found(folder: Path, guessed: Sequence[bytes]) -> list[str]:
    """Return the names of the files that have a digest of one of these texts, or its first sixteen bytes."""
    needles: set[bytes] = set()
    for data in guessed:
        for digest in digests(data):
            hexadecimal = digest.hex().encode()[:32]
            needles |= {digest[:16], hexadecimal, hexadecimal.upper(), base64.b64encode(digest)[:22]}
        needles.add(b"%08x" % zlib.crc32(data))
    listed = sorted(needles)
    begins = np.frombuffer(b"".join(each[:8] for each in listed), "<u8")
    hits = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            hits += [path.name for at in np.flatnonzero(np.isin(begins, eights(content))) if listed[at] in content][:1]
    return hits


def eights(content: bytes) -> NDArray[np.uint64]:
    """Return each eight bytes of some content as a number: what is none of them begins nothing in it."""
    lengths = [(len(content) - begin) // 8 for begin in range(8)]
    return np.concatenate(
        [np.frombuffer(content, "<u8", max(length, 0), begin) for begin, length in enumerate(lengths) if length > 0]
        or [np.empty(0, "<u8")]
    )


def written(text: str) -> list[Operation]:
    """Return writes of every kind that have a text."""
    return [
        Remember(content=text, id="a", fields={"user": "ana"}),
        Remember(content="else", id="b", fields={"user": "ana", "metadata": {"note": text}}),
        RememberAll(items=tuple(Remember(content=each, fields={"user": "ana"}) for each in (text, "fine"))),
        AddMessages(turns=(Turn("user", None, text),), fields={"user": "ana", "conversation": "monday"}),
        Update(id="seed", changes={"content": text}),
    ]


def execute(memory: Memory, operations: Sequence[Operation]) -> None:
    for number, operation in enumerate(operations):
        for _ in range(2):  # repeated, as after a lost answer
            with suppress(RejectedError):
                memory.execute(operation, idempotency_key=f"key {number}")


def opened(folder: Path, key: bytes | None) -> Memory:
    memory = recollect.open(folder / "a.db", key=key, embedder=Hashed())
    if memory.get("seed") is None:
        memory.remember("the seed", id="seed", user="ana")
    return memory


KEYS = {"the public key": None, "a private key": PRIVATE}


@pytest.mark.promise("erase.no-oracle")
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_no_file_confirms_a_guess_of_an_erased_text(tmp_path: Path, key: bytes | None) -> None:
    operations = written(PIN)
    guessed = list(forms(PIN, operations, "ana"))
    with opened(tmp_path, key) as memory:
        execute(memory, operations)
        memory.embed_all()
        memory.recall("PIN")
        memory.grep("PIN")
        before = found(tmp_path, guessed)
        assert ("vectors.db" in " ".join(before)) is (key is None)  # the search finds what is keyed with the public key
        assert memory.erase(f.user("ana"), redact=True).pending is False
        assert found(tmp_path, guessed) == []
    assert found(tmp_path, guessed) == []
    with opened(tmp_path, key) as memory, pytest.raises(recollect.errors.IdempotencyError, match="erased since"):
        memory.execute(operations[0], idempotency_key="key 0")  # that it was given is still known


@pytest.mark.promise("erase.no-oracle")
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize(
    ("policies", "text"),
    [({"redaction": "redact"}, PASSWORD), ({"redaction": "refuse"}, PASSWORD), ({"salience": "normal"}, NARRATION)],
    ids=["redacted", "refused", "narration"],
)
def test_no_file_confirms_a_guess_of_a_text_that_a_policy_kept_out(
    tmp_path: Path, key: bytes | None, policies: dict[str, Any], text: str
) -> None:
    operations = written(text)
    if "salience" in policies:
        del operations[1]  # metadata is not judged
    guessed = list(forms(text, operations, "ana"))
    with opened(tmp_path, key) as memory:
        memory.set_policies(**policies)
        execute(memory, operations)
        memory.embed_all()
        memory.recall(text)
        assert found(tmp_path, guessed) == []
        assert [
            path.name for path in tmp_path.rglob("*") if path.is_file() and text.encode() in path.read_bytes()
        ] == []


@pytest.mark.promise("erase.no-oracle")
def test_a_backup_that_was_made_while_an_erasure_was_pending_confirms_nothing(tmp_path: Path) -> None:
    operations = written(PIN)
    guessed = list(forms(PIN, operations, "ana"))
    copies = tmp_path / "copies"
    copies.mkdir()
    with opened(tmp_path, None) as memory:
        execute(memory, operations)
        memory.embed_all()
        with memory.open_export() as export:
            next(export.records)
            assert memory.erase(f.user("ana"), redact=True).pending is True
            memory.backup(copies / "meanwhile.backup")
    assert found(copies, guessed) == []
    recollect.open(copies / "meanwhile.backup", embedder="none").close()
    assert found(copies, guessed) == []


@pytest.mark.parametrize("redaction", ["redact", "refuse"])
def test_a_repeated_write_is_recognized_under_the_policies_that_it_was_made_under(
    tmp_path: Path, redaction: Any
) -> None:
    with opened(tmp_path, None) as memory:
        memory.set_policies(redaction=redaction)
        turns = tuple(Turn("user", None, each) for each in (PASSWORD, "fine"))
        write = AddMessages(turns=turns, fields={"conversation": "c"})
        first = memory.execute(write, idempotency_key="k")
        memory.set_policies(redaction="keep")
        again = memory.execute(write, idempotency_key="k")
        assert [each.record for each in again.results] == [each.record for each in first.results]
        assert len(again.failed) == len(first.failed) == (redaction == "refuse")
        with pytest.raises(recollect.errors.IdempotencyError, match="another write"):
            memory.execute(Remember(content="another"), idempotency_key="k")


def plain(data: Any, key: bytes) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


CONTROLS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a digest without a key": lambda patch: patch.setattr(answers, "_keyed", plain),
    "a digest of what was passed": lambda patch: patch.setattr(answers, "after_policies", lambda data, policies: data),
}


@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_the_search_finds_a_digest_that_is_left_on_purpose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control: Callable[[pytest.MonkeyPatch], None]
) -> None:
    control(monkeypatch)
    operations = written(PASSWORD)
    with opened(tmp_path, None) as memory:
        memory.set_policies(redaction="keep" if control is CONTROLS["a digest without a key"] else "redact")
        execute(memory, operations)
        assert found(tmp_path, list(forms(PASSWORD, operations, "ana"))) != []


def test_answers_of_earlier_releases_are_removed(tmp_path: Path) -> None:
    with opened(tmp_path, None) as memory:
        store = core_of(memory).store
        with store.write(memory._branch) as transaction:
            transaction.set_setting("answer/000001/x/y", json.dumps({"operation": plain(PIN, b""), "answer": {}}))
        memory.execute(Remember(content="with a key"), idempotency_key="k")
        with store.read() as view:
            assert view.setting_names("answer/", "answer0") == []
