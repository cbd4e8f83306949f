"""The types of the public names, for type checkers: `__init__.py` imports them on first use."""

from recollect import errors as errors
from recollect import filters as filters
from recollect import observe as observe
from recollect import operations as operations
from recollect import policies as policies
from recollect.engine.call_log import Call as Call
from recollect.engine.history_results import ChangedRecord as ChangedRecord
from recollect.engine.history_results import Deviation as Deviation
from recollect.engine.history_results import Difference as Difference
from recollect.engine.history_results import Erased as Erased
from recollect.engine.history_results import Lineage as Lineage
from recollect.engine.history_results import RecordVersion as RecordVersion
from recollect.engine.history_results import Replayed as Replayed
from recollect.engine.history_results import Restored as Restored
from recollect.engine.history_results import Taint as Taint
from recollect.engine.listeners import Subscription as Subscription
from recollect.engine.results import Export as Export
from recollect.engine.results import ExportedPart as ExportedPart
from recollect.engine.results import Failed as Failed
from recollect.engine.results import Hit as Hit
from recollect.engine.results import Hits as Hits
from recollect.engine.results import NamespaceHead as NamespaceHead
from recollect.engine.results import Outcome as Outcome
from recollect.engine.results import PartCounts as PartCounts
from recollect.engine.results import RecordList as RecordList
from recollect.engine.results import Report as Report
from recollect.engine.results import Why as Why
from recollect.engine.settings import Policies as Policies
from recollect.engine.settings import Quota as Quota
from recollect.engine.streams import CommitStream as CommitStream
from recollect.engine.write.drafts import Limits as Limits
from recollect.errors import RecollectError as RecollectError
from recollect.errors import Verdict as Verdict
from recollect.ledger.commits import Change as Change
from recollect.ledger.commits import Commit as Commit
from recollect.ledger.commits import Snapshot as Snapshot
from recollect.ledger.verifying import verify as verify
from recollect.memory import Batch as Batch
from recollect.memory import Memory as Memory
from recollect.memory import RecollectWarning as RecollectWarning
from recollect.memory.awaited import AsyncMemory as AsyncMemory
from recollect.memory.consolidation import Consolidated as Consolidated
from recollect.memory.consolidation import Summary as Summary
from recollect.memory.context.values import Context as Context
from recollect.memory.context.values import ContextItem as ContextItem
from recollect.memory.manager.duplicates import DuplicateGroup as DuplicateGroup
from recollect.memory.opening import open as open  # noqa: A004 - recollect.open is the name
from recollect.operations import ABSENT as ABSENT
from recollect.records.record import EntityId as EntityId
from recollect.records.record import Record as Record
from recollect.records.record import RecordId as RecordId
from recollect.stores.maintenance.backup import restore as restore
from recollect.stores.maintenance.migrate import Migrated as Migrated
from recollect.stores.maintenance.migrate import migrate as migrate
from recollect.stores.maintenance.rescue import RescueReport as RescueReport
from recollect.stores.maintenance.rescue import rescue as rescue
from recollect.stores.values import Backup as Backup
from recollect.stores.values import CheckReport as CheckReport
from recollect.stores.values import Compacted as Compacted
from recollect.wire.client import connect as connect

__version__: str
__all__: list[str]
