"""The calls that concern a store as a whole: quotas, vectors, checks, backups and free space."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping

from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls, RecollectWarning
from recollect.engine.results import VectorCounts
from recollect.operations import (
    BackUp,
    Check,
    Compact,
    EmbedAll,
    Per,
    Redaction,
    SetPolicies,
    SetQuota,
    VectorStats,
    WhenFull,
)
from recollect.operations.upkeep import Handling
from recollect.policies import CATEGORIES, Level
from recollect.records.origins import Origin
from recollect.stores.values import Backup, CheckReport, Compacted


@all_named
class Upkeep(Calls):
    """The calls that concern a store as a whole."""

    def set_quota(
        self,
        *,
        records: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the unit
        when_full: WhenFull = "refuse",
        per: Per | None = None,
        low_water: float = 1.0,
    ) -> None:
        """Set the quota of this namespace; without `records` and `bytes`, remove it.

        The quota is stored in the store and applies to every process that writes. `stats()["quota"]` shows it and how
        much of it is used.

        Args:
            records: Maximum number of live records; None: no limit.
            bytes: Maximum size of the live records, in bytes of their canonical encoding; None: no limit.
            when_full: What happens to a write that exceeds the quota. "refuse": it raises QuotaError. "least recent":
                the least recently used records are evicted; writing, getting and recalling are uses. "least
                important": the least important records are evicted, and among these the least recently used. "oldest":
                the records with the earliest time are evicted, and before them those without a time. Expired records
                are removed first, pinned records are never evicted, and the log names each removed record.
            per: "user", "agent" or "conversation": the quota applies to each of them separately, and a write evicts
                only records of its own user, agent or conversation. Records without one share a quota of the same
                size. None: the quota applies to the namespace as a whole.
            low_water: The share of a limit, above 0 and at most 1, down to which a write evicts that exceeds the limit.
                With 0.9, a write that exceeds a quota of 10,000 records leaves 9,000 of them, and the next 1,000
                writes evict nothing. It needs a `when_full` that evicts.

        Raises:
            InvalidArgumentError: An argument is invalid.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            One durable write. The first write after it reads all records of the namespace to count them. A write that
            evicts costs in proportion to the number of evicted records.
        """
        self.execute(SetQuota(records=records, bytes=bytes, when_full=when_full, per=per, low_water=low_water))

    def set_policies(
        self,
        *,
        redaction: Redaction = "keep",
        categories: Collection[str] = CATEGORIES,
        salience: Level = "off",
        origins: Mapping[Origin, Handling] | None = None,
        flagged: Handling = "store",
        record_origins: bool = True,
    ) -> None:
        """Set the policies of this namespace, all of them. They are stored, and apply to every process that writes.

        They apply to the content and the metadata of what is written from now on; what is stored already stays.
        `rollback` and `revert` restore texts as they were.

        Args:
            redaction: What happens to a text that contains a secret or something else of `categories`. "keep": it is
                stored as it is. "redact": it is stored with asterisks instead, and the original appears nowhere.
                "refuse": it is rejected: `remember` raises RejectedError, `execute` returns an outcome with the
                status "rejected", and calls that store many texts list it in their report.
            categories: What is looked for: see `recollect.policies.redact`.
            salience: How strictly a text is judged by whether it is worth remembering (`recollect.policies.judge`).
                "normal": narration of an agent's own steps, bare file paths and texts under 8 characters are rejected
                in the same way. "strict": also what is short and has no word of importance. "off": nothing is.
            origins: What happens to records by who said them (docs/trust.md), such as `{"web": "quarantine"}`. "store":
                they are stored. "quarantine": they are kept apart, where no call finds them, until a person releases or
                rejects them (`quarantine`). "refuse": they are rejected, as above. Records of the user and the owner
                are always stored.
            flagged: What happens to a record of assistants, tools, documents and the web whose text looks like an
                attack on the memory (`recollect.policies.flags`).
            record_origins: Whether the class of origin of the writer, and of what a record derives from, is recorded
                and limits what the writer may change. False: a record has the class that its fields imply.

        Raises:
            InvalidArgumentError: An argument is invalid.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            One durable write. With a policy, each write searches its text: a fraction of a millisecond for a kilobyte.
        """
        self.execute(
            SetPolicies(
                redaction=redaction,
                categories=categories,  # type: ignore[arg-type]
                salience=salience,
                origins=origins or {},
                flagged=flagged,
                record_origins=record_origins,
            )
        )

    def check(self) -> CheckReport:
        """Check the whole store and return a description of each problem; an empty list if it is intact.

        The report also counts what is missing on purpose: pages of old roots that were dropped, and erased versions.

        Raises:
            ScopeError: This memory is scoped.

        Cost:
            Reads and hashes everything in the store.
        """
        report: CheckReport = self.execute(Check())
        return report

    def compact(self) -> Compacted:
        """Drop the pages of old roots, and give the free space of the file back to the system.

        Nothing else is removed: every version and every commit stays, and any old root can still be read and proved.
        Other processes can have the store open. They cannot write meanwhile, and a reader whose view stays open keeps
        the file from becoming shorter: then the result is not `complete`, and the next checkpoint shortens the file.

        Raises:
            ScopeError: This memory is scoped.
            ReadOnlyStoreError: The store must not be written.
            StoreBusyError: Another writer held the lock until the timeout; nothing was changed.
            StoreError: The store failed; nothing was lost.

        Cost:
            Rewrites the file: about a second per 200 MB, and as much memory and free disk space as the file has bytes.
        """
        compacted: Compacted = self.execute(Compact())
        return compacted

    def backup(self, path: str | os.PathLike[str], *, verify: bool = False, force: bool = False) -> Backup:
        """Copy one snapshot of the whole store, with all namespaces, to a file. Other writers are not blocked.

        The backup is a store in a single file, durable when this returns. `recollect.restore` restores it.

        Args:
            path: Where to write the backup.
            verify: Before moving the copy to `path`, open it, check it completely, and recompute every root hash from
                the records.
            force: Replace any file at `path`. By default only an older backup is replaced.

        Raises:
            UnsupportedError: The store is not a file.
            ScopeError: This memory is scoped.
            InvalidArgumentError: `path` is not the path of a file, or a file there must not be replaced.
            DamagedStoreError: The store is corrupt.
            StoreError: The store or the copy failed.

        If this raises, whatever was at `path` is still there.
        """
        made: Backup = self.execute(BackUp(path=path, verify=verify, force=force))  # type: ignore[arg-type]
        return made

    def embed_all(self, batch_size: int = 100, progress: Callable[[int, int], object] | None = None) -> int:
        """Embed every text that has no vector of the current embedder, and return how many were embedded.

        Other writers are not blocked. The vectors of each batch are saved at once, so a run that was killed continues
        with the next call. A text that the embedder cannot process is skipped, with a RecollectWarning, and listed in
        `vector_stats()["failed"]`.

        Args:
            batch_size: Number of texts that are passed to the embedder at a time, 1 or more.
            progress: Called with the number of records processed so far and the total.

        Raises:
            UnsupportedError: There is no embedder.
            EmbedderError: The embedder cannot be used, or three batches in a row failed.
            MissingExtraError: A library that the embedder needs is not installed.
            InvalidArgumentError: An argument is invalid.
            StoreError: The store failed.

        Vectors that were saved before an error remain.
        """
        done: int = self.execute(EmbedAll(batch_size=batch_size, progress=progress))
        failed = self.vector_stats()["failed"]
        if failed:
            warnings.warn(
                f"{len(failed)} records have no vector, the first because {failed[0]['reason']}: "
                "vector_stats()['failed'] lists them",
                RecollectWarning,
                stacklevel=3,  # the caller of the checked call (`arguments.signatures.named`)
            )
        return done

    def vector_stats(self) -> VectorCounts:
        """Return how many records have a vector, as a dictionary.

        - "model", "dimensions": of the embedder; None if there is no embedder or its dimension is not known yet.
        - "total", "embedded", "coverage": the number of records with a text, the number of those with a vector of the
          embedder, and the percentage.
        - "failed": the id and the reason of each record that could not be embedded in this process.
        - "watermark": the seq up to which every text has a vector; not within a scope.
        - "models": the model, the dimensions and the number of the stored vectors of every model; not within a scope.

        Cost:
            Reads every record.
        """
        stats: VectorCounts = self.execute(VectorStats())
        return stats
