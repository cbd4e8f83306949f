"""Receipts of answers: what they bind is read from the store when a receipt is asked for.

The log only grows, so what the commit of an answer had can be read later as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC
from typing import Any

from recollect.engine.core import Core
from recollect.engine.read import rules
from recollect.errors import InvalidArgumentError, UnknownTargetError
from recollect.ledger import receipts
from recollect.ledger.commits import Branch, Head
from recollect.models.embedding.base import Embedder, floors_of
from recollect.operations import Receipt
from recollect.stores.base import View


def receipt(core: Core, branch: Branch, operation: Receipt) -> receipts.Receipt:
    """Write the receipt of an answer.

    Raises:
        UnsupportedError: The question has a custom filter, which cannot travel.
        UnknownTargetError: The store has another history than when the question was answered.

    Cost:
        O(log n) for each hit, and that of the head of the log.
    """
    embedder = None if operation.vectors is None or core.vectors is None else model_of(core.vectors.embedder)
    question = json.dumps(operation.operation.to_json(), ensure_ascii=False, separators=(",", ":"))
    with core.store.read() as view:
        root = root_at(view, branch, operation.seq)
        if root is None or root.hex() != operation.root:
            raise UnknownTargetError(operation.seq, "the store has another history since: an older copy was restored")
        return receipts.sealed(
            {
                "namespace": branch.namespace,
                "branch": branch.name,
                "operation": question,
                "language": core.intake.language,
                "embedder": embedder,
                "vectors": None if embedder is None else operation.vectors,
                "vector": None if embedder is None else operation.vector or None,
                "rules": rules.digest(core.zone),
                "time": operation.time.astimezone(UTC).isoformat(),
                "seq": operation.seq,
                "root": operation.root,
                "log": core.log_trees.head(view, branch, operation.seq),
                "hits": listed(view, branch, operation.seq, operation.hits),
                "standing": listed(view, branch, operation.seq, operation.standing),
            }
        )


def model_of(embedder: Embedder) -> dict[str, Any]:
    """Return what decides the dense signal: the model, and the cosines from which on it counts."""
    return {"name": embedder.name, "floors": [repr(float(each)) for each in floors_of(embedder)]}


def root_at(view: View, branch: Branch, seq: int) -> bytes | None:
    """Return the root after a commit; None if there is no such commit."""
    head = Head() if seq == 0 else view.head_at(branch, seq)
    return None if head is None else head.root.hash


def listed(view: View, branch: Branch, seq: int, hits: Iterable[Iterable[Any]]) -> list[dict[str, Any]]:
    """Return hits as receipts have them: with the version that each record had at the commit."""
    pairs = [(record_id, score) for record_id, score in hits]
    versions = view.versions_at(branch, [record_id for record_id, _ in pairs], seq)
    out = []
    for record_id, score in pairs:
        version = versions.get(record_id)
        if version is None:
            raise InvalidArgumentError("hits", record_id, f"is not the id of a record of commit {seq}")
        out.append({"id": record_id, "version": version.hex(), "score": score})
    return out
