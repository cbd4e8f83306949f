"""Running an importer: store its items in batches, and report the outcome of each.

A committed batch stays stored, whatever happens later; importing the same source again changes nothing; every item is
counted, or reported as damaged with its location. Only one batch is in memory at a time. A document is in one batch as
a whole, and replaces what an earlier import of it stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from recollect import filters as f
from recollect.arguments.signatures import check_known
from recollect.errors import (
    ConflictError,
    InvalidArgumentError,
    InvalidRecordError,
    MissingExtraError,
    OriginError,
    RecollectError,
    ScopeError,
    StoreError,
    UnknownRecordError,
)
from recollect.importers import replacing
from recollect.importers.base import (
    Damage,
    ImportedDocument,
    Importer,
    Item,
    ItemForm,
    NamedImporter,
    NoticedZone,
    Omission,
    Part,
    Promise,
    Stored,
    TurnImporter,
    UnreadFile,
    check_memory,
)
from recollect.importers.chunks import DocumentImporter
from recollect.importers.embeds import PICTURES
from recollect.importers.report import ImportReport
from recollect.importers.trees import ABOUT
from recollect.ledger.parts import RECORDS
from recollect.operations import Now, Remember, checked_parts
from recollect.quoting import printable
from recollect.records.factories import OTHER_BRANCH
from recollect.records.messages.tools import Hearing
from recollect.records.messages.values import UnreadableError
from recollect.records.origins import DOCUMENT, RANKS, USER, Origin, implied, least
from recollect.records.record import Fields, Record, restored
from recollect.text.unicode import nfc

if TYPE_CHECKING:
    from recollect.engine.results import Outcome
    from recollect.memory import Batch, Memory

#: Items in one commit.
BATCH = 1000
#: Why an item was not stored.
_FAILURES = (RecollectError, UnreadableError)


class Source:
    """A source to import. Its first item is read at once, to check the format.

    Attributes:
        writer: The class of origin of who imports it: none of its items states a higher one.

    Args:
        importer: The importer of its format.
        path: The file or folder.
        zone: The time zone of times without an offset; default: that of the memory.
        follow_links: Whether links within a folder to files outside of it are followed.
        name: For text and Markdown, a name before the path of each file in its `source`, such as the name of the
            folder: "docs" for "docs/a.md". Files with the same source are the same document.
        forget_deleted: Forget the documents under this name whose files the folder no longer has.
        wanted: Of a folder of text or Markdown, read only the files for whose path in it this returns true.
        defaults: Fields for items that lack them; tags are added to those of an item. `origin` is the class of those
            that do not say whose word they are, instead of that of the format (docs/trust.md). Records of an export are
            stored as they are, so it takes none.
        only: Of a database, the names of the parts to import, such as collections; default: all.

    Raises:
        ImportFormatError: The source does not have the format, or has no such part.
        InvalidRecordError: A default is invalid.
        InvalidArgumentError: `name`, `forget_deleted` or `only` does not fit the importer or the path, or there are
            defaults and the source is an export.
    """

    def __init__(
        self,
        importer: Importer,
        path: Path,
        zone: tzinfo | None = None,
        *,
        follow_links: bool = False,
        name: str | None = None,
        forget_deleted: bool = False,
        wanted: Callable[[str], bool] | None = None,
        defaults: Mapping[str, Any] | None = None,
        only: Sequence[str] = (),
    ) -> None:
        name = name if name is None else name.rstrip("/")
        self._path, self._name, self._forget_deleted = path, name, forget_deleted
        self._suffixes = (*importer.suffixes, *PICTURES) if isinstance(importer, DocumentImporter) else ()
        self._defaults = _checked(defaults or {})
        #: Whose word the items are that do not say so themselves.
        self._origin: Origin | None = self._defaults.pop("origin", getattr(importer, "origin", None))
        self.stated = self._origin if "origin" in (defaults or {}) else None
        self._hearing: dict[Any, Hearing] = {}  # by conversation
        self.writer: Origin = USER
        if isinstance(importer, TurnImporter) and "conversation" in self._defaults:
            importer = importer.called(self._defaults["conversation"])
        if isinstance(importer, NamedImporter):
            importer = importer.only(_checked_names(only))
        elif only:
            raise InvalidArgumentError("only", list(only), f"is for formats with named parts, not for {importer.name}")
        self.zone = NoticedZone(zone)
        items: Iterator[Part]
        if isinstance(importer, DocumentImporter):
            self._check(path)
            items = importer.read(path, self.zone, follow_links=follow_links, prefix=name or "", wanted=wanted)
        elif name is not None or forget_deleted:
            raise InvalidArgumentError("name", name, f"is for documents (text, markdown), not for {importer.name}")
        else:
            items = importer.read(path, self.zone, follow_links=follow_links)
        first = next(items, None)
        if isinstance(first, Item) and first.exact and defaults:
            rule = "cannot be added to an export, whose records are stored exactly as they are"
            raise InvalidArgumentError("defaults", ", ".join(defaults), rule)
        if self.stated is not None and RANKS[self.stated] > RANKS[DOCUMENT] and self._suffixes:
            rule = f"cannot be stated for documents, which are of the class {DOCUMENT}: endorse what you have read"
            raise InvalidArgumentError("origin", self.stated, rule)
        self._items = chain([] if first is None else [first], items)

    @property
    def file(self) -> str:
        """The name of the file whose items name none; of a folder or a zip file, its own."""
        return printable(self._path.name)

    @property
    def owner(self) -> dict[str, Any]:
        """The fields that every item has."""
        return self._defaults

    def items(self) -> Iterator[Part]:
        """Yield the items, with the defaults, and what else the importer yields."""
        for each in self._items:
            if isinstance(each, Item):
                yield self._filled(each)
            elif isinstance(each, ImportedDocument):
                yield each._replace(items=tuple(map(self._filled, each.items)))
            else:
                yield each

    def _filled(self, item: Item) -> Item:
        """Return an item with the defaults, and the class of origin that its format or its conversation implies."""
        origin = None if item.exact else self._origin
        if item.form is None and not item.exact and None not in map(item.fields.get, ("role", "conversation")):
            about = item.fields.get("metadata")
            hearing = self._hearing.setdefault((item.namespace, item.fields["conversation"]), Hearing({}))
            speaker, metadata = item.fields.get("speaker"), about if isinstance(about, Mapping) else {}
            heard = hearing.of(item.fields["role"], speaker, metadata)
            origin = heard if origin is None else origin if heard is None else least((origin, heard))
        if origin is not None:
            stated = item.fields.get("origin")
            known = (origin, self.writer, _implied(item), *((stated,) if stated in RANKS else ()))
            item = replace(item, fields={**item.fields, "origin": least(known)})
        if not self._defaults:
            return item
        own = {name: value for name, value in item.fields.items() if value is not None}
        fields = {**self._defaults, **own}
        if "tags" in self._defaults:
            fields["tags"] = [*self._defaults["tags"], *own.get("tags", ())]
        return replace(item, fields=fields)

    def _check(self, path: Path) -> None:
        if self._name is not None:
            try:
                Record(id="piece", content="piece", source=self._name)
            except InvalidRecordError as error:
                raise InvalidArgumentError("name", self._name, error.args[2]) from None
        if self._forget_deleted and (self._name is None or not path.is_dir()):
            rule = "needs a folder and a name for it (--as NAME), to tell its documents from those of other folders"
            raise InvalidArgumentError("forget_deleted", True, rule)

    def deleted(self, memory: Memory) -> list[str]:
        """Return the sources of the documents to forget: those under its name whose files do not exist.

        A file that cannot be seen for another reason, such as a folder that cannot be read, counts as existing.
        """
        prefix = f"{self._name}/"
        gone = [
            source
            for source in (replacing.sources(memory, self._defaults) if self._forget_deleted else ())
            if source.startswith(prefix)
            and source.lower().endswith(self._suffixes)
            and _is_missing(self._path / source.removeprefix(prefix))
        ]
        if not gone:
            return []
        # A source is in NFC, and the name of its file may have another form.
        there = {nfc(path.relative_to(self._path).as_posix()) for path in self._path.rglob("*")}
        return [source for source in gone if source.removeprefix(prefix) not in there]


def _implied(item: Item) -> Origin:
    """Return the class of origin that the fields of an item imply."""
    role, source, kind = map(item.fields.get, ("role", "source", "kind"))  # which are not checked yet
    return implied(
        role if isinstance(role, str) else None,
        source if isinstance(source, str) else None,
        kind if isinstance(kind, str) else "",
    )


def _checked_names(only: Sequence[str]) -> Sequence[str]:
    if isinstance(only, str) or not all(isinstance(name, str) for name in only):
        raise InvalidArgumentError("only", only, "must be a list of names")
    return only


def _checked(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults, validated once, so that an invalid one is not the damage of every item."""
    fields = {name: value for name, value in defaults.items() if value is not None}
    for name in fields:
        check_known("defaults", name, tuple(Fields.__annotations__))
    record = Record(id="item", content="item", **fields)
    return {name: getattr(record, name) for name in fields}


def _is_missing(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def import_source(
    memory: Memory,
    source: Source,
    *,
    parts: Collection[str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> ImportReport:
    """Store the items of a source.

    Args:
        memory: Where to store them.
        parts: The parts of the memory to import, by name: "records", or what facets keep, which exports have. Default:
            all.
        progress: Called after each commit with the number of items processed.

    Raises:
        InvalidArgumentError: There is no such part.
        OriginError: `origin` of the defaults is above the class of the writer.
        StoreError: The store failed. What was committed stays; run the import again to continue.
    """
    from recollect.calls.calls import zone_of_store

    source.zone.settle(zone_of_store(memory))
    source.writer = memory._place.origin
    if source.stated is not None and RANKS[source.stated] > RANKS[source.writer]:
        raise OriginError(f"records of the class {source.stated!r}", source.writer)
    run = _Run(memory, progress, source, parts)
    for each in source.items():
        run.take(each)
    run.flush()
    run.forget(source)
    return replace(run.report(), zone_assumed=source.zone.name if source.zone.used else None)


def import_path(
    memory: Memory,
    importer: Importer | str,
    path: str | os.PathLike[str],
    *,
    zone: tzinfo | None = None,
    follow_links: bool = False,
    name: str | None = None,
    forget_deleted: bool = False,
    defaults: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    parts: Collection[str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> ImportReport:
    """Store the items of a file or folder: `import_source` of a `Source`, with the arguments and errors of both.

    Args:
        memory: Where to store them.
        importer: The importer of the format, or its name in `IMPORTERS`.
        path: The file or folder.
        zone: The time zone of times without an offset; default: that of the memory.
        follow_links: Whether links within a folder to files outside of it are followed.
        name: The name of the documents, which begins their sources (`Source`).
        forget_deleted: Whether documents that are no longer in the folder are forgotten (`Source`).
        defaults: Fields for items that lack them, such as `{"user": "ana", "tags": ["chat"]}`; see `Source`.
        only: Of a database, the names of the parts to import, such as collections; default: all.
        parts: The parts of the memory to import, as in `import_source`.
        progress: Called after each commit with the number of items processed.

    Raises:
        InvalidArgumentError: An argument is invalid.
        ImportFormatError: The source does not have the format.
        StoreError: The store failed. What was committed stays; run the import again to continue.
    """
    check_memory(memory)
    try:
        chosen = Path(path)
    except TypeError:
        raise InvalidArgumentError("path", path, "must be the path of a file or folder") from None
    source = Source(
        _importer(importer),
        chosen,
        zone,
        follow_links=follow_links,
        name=name,
        forget_deleted=forget_deleted,
        defaults=defaults,
        only=only,
    )
    return import_source(memory, source, parts=parts, progress=progress)


def _importer(importer: Importer | str) -> Importer:
    from recollect.importers import IMPORTERS

    known = IMPORTERS.get(importer) if isinstance(importer, str) else importer
    if isinstance(known, type) or not isinstance(known, Importer):
        rule = f"must be an Importer, or one of {', '.join(IMPORTERS)}"
        raise InvalidArgumentError("importer", importer, rule)
    return known


class _Run:
    """An import in progress: the current batch, and the outcomes of those before."""

    def __init__(
        self,
        memory: Memory,
        progress: Callable[[int], object] | None,
        source: Source,
        parts: Collection[str] | None = None,
    ) -> None:
        self._memory = memory
        self._chosen = checked_parts(parts)
        for name in self._chosen or ():
            memory._part(name)  # raises if there is no such part
        self._owner, self._file = source.owner, source.file
        self._progress = progress
        self._batch: list[tuple[int, Item]] = []
        self._documents: list[tuple[int, ImportedDocument]] = []  # each with the number of the items before it
        self._taken = 0
        self._done = 0
        self._damaged: list[tuple[int, Damage]] = []
        self._left_out: dict[str, int] = {}
        self._outcomes: dict[str, Any] = dict.fromkeys(
            (
                *("created", "unchanged", "updated", "replaced", "forgotten", "differing"),
                *("moved", "renumbered", "expired", "dated", "proposed", "quarantined", "lowered"),
            ),
            0,
        )
        self._namespaces: dict[str, int] = {}
        self._about: dict[str, Any] = {}  # facts about conversations that wait for their first own turn
        self._renumbered: dict[str, str] = {}  # the ids that turns got, by those of the source
        self._files: dict[str, dict[str, int]] = {}
        self._parts: dict[str, int] = {}
        self._roots: dict[str, bool] = {}

    def take(self, each: Part) -> None:
        if isinstance(each, UnreadFile):
            self._files.setdefault(each.file, {})
            return
        if isinstance(each, Omission):
            if each.number:
                self._left_out[each.what] = self._left_out.get(each.what, 0) + each.number
            return
        if isinstance(each, (Item, Promise)) and self._chosen is not None and each.part not in self._chosen:
            return
        if isinstance(each, Promise):
            self.flush()
            self._check(each)
            return
        if isinstance(each, ImportedDocument):
            self._documents.append((self._taken, each))
            self._taken += len(each.items)
            if len(self._documents) == replacing.MOST_DOCUMENTS or self._taken - self._documents[0][0] >= BATCH:
                self.flush()
            return
        self._taken += 1
        if isinstance(each, Damage):
            self._damaged.append((self._taken, each))
            return
        last = self._batch[-1][1] if self._batch else each
        together = each.group != "" and each.group == last.group
        if _target(last) != _target(each) or (len(self._batch) >= BATCH and not together):
            self.flush()
        self._batch.append((self._taken, each))

    def flush(self) -> None:
        """Commit the batch."""
        if self._documents:
            self._flush_documents()
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        first = batch[0][1]
        try:
            memory = self._in(first)
        except InvalidArgumentError as error:
            results: list[Stored] = [error] * len(batch)
        else:
            store = first.form.store if first.form is not None else _store_exactly if first.exact else _store
            adopted = _adopt(memory, [item for _, item in batch]) if store is _store else frozenset()
            results = store(memory._part(first.part), [item for _, item in batch])
            self._outcomes["moved"] += _move(memory, [item for _, item in batch], results, self._about)
            results = [_as_updated(each, adopted) for each in results] if adopted else results
            self._relink(memory, [item for _, item in batch], results)
            self._count(memory, results, first.part)
        self._note(batch, results)

    def _relink(self, memory: Memory, items: Sequence[Item], results: Sequence[Stored]) -> None:
        """Let what derives from a turn name the id that the turn got, where another user's record has its own."""
        from recollect.engine.results import Outcome
        from recollect.operations import Update

        stored = [
            (item, each) for item, each in zip(items, results, strict=True) if isinstance(each, Outcome) and each.record
        ]
        self._renumbered |= {each.asked_id: each.record.id for _, each in stored if each.asked_id and each.record}
        for item, each in stored if self._renumbered else ():
            links = tuple(self._renumbered.get(link, link) for link in item.fields.get("derived_from", ()))
            if each.record is not None and links and links != each.record.derived_from:
                memory.execute(Update(id=each.record.id, changes={"derived_from": links}))

    def _flush_documents(self) -> None:
        documents, self._documents = self._documents, []
        found = replacing.replace(self._memory, [document for _, document in documents], self._owner)
        for (before, document), replaced in zip(documents, found, strict=True):
            self._outcomes["forgotten"] += replaced.forgotten
            self._outcomes["replaced"] += replaced.changed
            self._count(self._memory, replaced.results)
            self._note(list(enumerate(document.items, before + 1)), replaced.results)

    def forget(self, source: Source) -> None:
        """Forget the documents whose files were deleted, if the source asks for it."""
        self._outcomes["forgotten"] += replacing.forget(self._memory, source.deleted(self._memory), self._owner)

    def _in(self, item: Item | Promise) -> Memory:
        """Return the memory that an item belongs to."""
        return self._memory if item.namespace is None else self._memory.namespace(item.namespace)

    def _count(self, memory: Memory, results: Sequence[Stored], part: str = RECORDS) -> None:
        stored = sum(result is not None and not isinstance(result, _FAILURES) for result in results)
        if stored:
            self._namespaces[memory.name] = self._namespaces.get(memory.name, 0) + stored
            self._parts[part] = self._parts.get(part, 0) + stored

    def _note(self, batch: list[tuple[int, Item]], results: Sequence[Stored]) -> None:
        for (number, item), result in zip(batch, results, strict=True):
            if isinstance(result, _FAILURES):
                self._damaged.append((number, Damage(item.place, str(result), item.file)))
                continue
            if result is None:
                self._outcomes["expired"] += 1
                self._count_in(item.file, "expired")
                continue
            self._outcomes[result.status] += 1
            self._count_in(item.file, result.status)
            self._outcomes["dated"] += bool(item.dated_by)
            # What is placed has been moved, and a later export may date a turn without a time otherwise.
            own = set(result.differing) - set(_PLACE if item.placed else ()) - ({"time"} if item.dated_by else set())
            self._outcomes["differing"] += result.status == "unchanged" and bool(own)
            self._outcomes["renumbered"] += result.asked_id is not None
            if item.exact and result.record is not None and result.status in ("created", "updated", "proposed"):
                had = item.fields.get("origin") or _implied(item)
                self._outcomes["lowered"] += RANKS.get(had, 0) > RANKS[result.record.effective_origin]
        self._done += len(batch)
        if self._progress is not None:
            self._progress(self._done)

    def _check(self, promise: Promise) -> None:
        with suppress(ScopeError, InvalidArgumentError):  # a damaged part and a scope have no root to compare
            memory = self._in(promise)
            memory.root  # noqa: B018 - a scope has none
            with memory.open_export(parts=[promise.part]) as export:
                found = {RECORDS: export.root, **{each.name: each.root for each in export.parts}}
                same = found.get(promise.part) == promise.root
            self._roots[memory.name] = self._roots.get(memory.name, True) and same

    def _count_in(self, file: str, outcome: str) -> None:
        counts = self._files.setdefault(file or self._file, {})
        counts[outcome] = counts.get(outcome, 0) + 1

    def report(self) -> ImportReport:
        damaged = tuple(damage for _, damage in sorted(self._damaged, key=lambda each: each[0]))
        for each in damaged:
            self._count_in(each.file, "damaged")
        report = ImportReport(damaged=damaged, namespaces=self._namespaces, **self._outcomes)
        report = replace(report, left_out=self._left_out, parts=self._parts, files=self._files)
        return replace(report, roots=self._roots)


def _target(item: Item) -> tuple[str | None, bool, str, ItemForm | None]:
    """Return what the items of one commit have in common."""
    return item.namespace, item.exact, item.part, item.form


def _store(memory: Memory, items: Iterable[Item]) -> list[Stored]:
    """Remember items as `remember_all` does; return the outcome or the error of each."""
    from recollect.calls.calls import store_all

    fields = [{**item.fields, "standing": False} for item in items]  # the user did not ask for that here
    report = store_all(memory, fields)
    failed = {each.index: each.reason for each in report.failed}
    for reason in failed.values():
        if isinstance(reason, StoreError):
            raise reason
    outcomes = iter(report.results)
    return [failed[at] if at in failed else next(outcomes) for at in range(len(fields))]


def _adopt(memory: Memory, items: Sequence[Item]) -> frozenset[str]:
    """Give the user whom items name to the same records that were imported without one; return their ids."""
    from recollect.operations import Update

    owned = {item.fields["id"]: item.fields for item in items if item.fields.get("user") and "id" in item.fields}
    if not owned:
        return frozenset()
    writes = []
    for record in memory.find(f.id(*owned)):
        fields = owned.get(record.id, {})
        same = record.content == fields.get("content") and record.kind == fields.get("kind", record.kind)
        if record.user is None and same and record.agent == fields.get("agent"):
            writes.append(Update(id=record.id, changes={"user": fields["user"]}, expect=record.hash))
    done = []
    if writes:
        with memory.batch() as batch:
            for write in writes:
                with suppress(UnknownRecordError, ConflictError):  # another process has changed it meanwhile
                    batch.execute(write)
                    done.append(write.id)
    return frozenset(done)


def _as_updated(result: Stored, ids: Collection[str]) -> Stored:
    """Return the outcome of a record that was changed before it was found to be stored already."""
    from recollect.engine.results import Outcome

    if not isinstance(result, Outcome) or result.record is None or result.status != "unchanged":
        return result
    return replace(result, status="updated") if result.record.id in ids else result


#: The fields of a turn that say where it is in its conversation. Of its tags, that of another branch does.
_PLACE = ("conversation", "position", "tags")


def _move(memory: Memory, items: Sequence[Item], results: list[Stored], carried: dict[str, Any]) -> int:
    """Move turns that were stored already to where the source has them now; return how many moved.

    The facts about their conversation become those of the source, too. The result of such a turn is replaced.

    Args:
        carried: Facts about a conversation whose first turns stay in another one, by its name: its first own turn gets
            them.
    """
    from recollect.engine.results import Outcome
    from recollect.operations import Update

    writes: list[Update] = []
    moved = 0
    for at, (item, result) in enumerate(zip(items, results, strict=True)):
        if not item.placed or not isinstance(result, Outcome) or result.record is None:
            continue
        record = result.record
        facts = item.fields.get("metadata", {}).get(ABOUT)
        if item.stays_in and not f"{record.conversation}/".startswith(f"{item.stays_in}/"):
            results[at] = replace(result, differing=())
            carried |= {} if facts is None else {item.stays_in: facts}
            continue
        facts = facts if facts is not None else carried.pop(item.stays_in, None)
        about = _about(facts, record)
        if facts is not None and not about:
            results[at] = result = _without_differing(result, "metadata")
        if result.status != "unchanged" and not about:
            continue
        place = _place(item, record) if result.status == "unchanged" else {}
        if record.changed(**place) != record:
            moved += 1
        elif not about:
            continue
        writes.append(Update(id=record.id, changes={**place, **about}))
        if about and result.status == "unchanged":
            results[at] = replace(_without_differing(result, "metadata"), status="updated")
    if writes:
        with memory.batch() as batch:
            for write in writes:
                with suppress(UnknownRecordError):  # another process has forgotten it meanwhile
                    batch.execute(write)
    return moved


def _place(item: Item, record: Record) -> dict[str, Any]:
    """Return what says where a turn is, as the source has it. Its other tags stay."""
    own = [tag for tag in record.tags if tag != OTHER_BRANCH]
    place: dict[str, Any] = {name: item.fields[name] for name in ("conversation", "position") if name in item.fields}
    return {**place, "tags": [*own, *(tag for tag in item.fields.get("tags", ()) if tag == OTHER_BRANCH)]}


def _without_differing(outcome: Outcome, name: str) -> Outcome:
    return replace(outcome, differing=tuple(each for each in outcome.differing if each != name))


def _about(facts: Any, record: Record) -> dict[str, Any]:
    """Return the metadata of a turn with the facts about its conversation that the source has now; {} if it has them.

    The first turn of a conversation has them. One that is the first no more keeps them: they do no harm.
    """
    if facts is None or record.metadata.get(ABOUT) == facts:
        return {}
    return {"metadata": {**record.metadata, ABOUT: facts}}


def _store_exactly(memory: Memory, items: Iterable[Item]) -> list[Stored]:
    """Store complete records as they are; return the outcome or the error of each, None if it has expired."""
    results: list[Stored] = []
    with memory.batch() as batch:
        now = memory.execute(Now())
        for item in items:
            try:
                record = restored(**item.fields)
                expired = record.expires is not None and record.expires <= now
                results.append(None if expired else _restored(batch, record))
            except StoreError:
                raise
            except RecollectError as error:
                results.append(error)
    return results


def _restored(batch: Batch, record: Record) -> Outcome:
    """Store exactly this record, replacing the record that has its id."""
    outcome: Outcome = batch.execute(restoring(record))
    return outcome


def restoring(record: Record) -> Remember:
    """Return the operation that stores exactly this record, with its class, in the place of that with its id."""
    from recollect.calls.calls import remember_operation

    return replace(remember_operation(record), if_exists="update", keep_origin=True)


# Watching a folder of documents: import it, then whatever changes in it, until the caller stops.
#
# The library watchfiles reports the changes (extra `watch`); only this module imports it, when it is used.

#: Milliseconds that the watcher waits for a change before it yields an empty set.
_WAIT_MS = 200


def watch(
    memory: Memory,
    importer: Importer,
    folder: Path,
    *,
    zone: tzinfo | None = None,
    follow_links: bool = False,
    name: str | None = None,
    forget_deleted: bool = False,
    defaults: Mapping[str, Any] | None = None,
    changes: Iterable[set[str]] | None = None,
) -> Iterator[ImportReport]:
    """Import a folder of documents, then the files in it that change; yield a report of each import.

    A file that cannot be read is damage in a report, and is read again when it changes. What it was before stays. So a
    file that is being written may be imported in part, and is imported as a whole when it is complete.

    Args:
        memory: Where to store the documents.
        importer: The importer of text or Markdown.
        zone: See `import_path`.
        follow_links: See `import_path`.
        name: See `import_path`.
        forget_deleted: Forget documents whose files are deleted. See `import_path`.
        defaults: See `import_path`.
        changes: The paths that changed, set by set, instead of those that the file system reports. The first set says
            that changes are recorded from now on.

    Raises:
        MissingExtraError: watchfiles is not installed.
        InvalidArgumentError: The path is not a folder, or see `Source`.
        ImportFormatError: The folder has no such file.
        StoreError: The store failed.
    """
    if not isinstance(importer, DocumentImporter):
        raise InvalidArgumentError("importer", importer.name, "does not import documents")
    if not os.path.isdir(folder):
        raise InvalidArgumentError("folder", printable(folder), "is not a folder, and only folders are watched")
    root = os.path.realpath(folder)
    changed = iter(_changes(root) if changes is None else changes)
    first = next(changed, set())  # from now on changes are recorded, so those during the first import are not missed
    options: dict[str, Any] = {"follow_links": follow_links, "name": name, "defaults": defaults}
    source = Source(importer, folder, zone, forget_deleted=forget_deleted, **options)
    yield import_source(memory, source)
    for paths in _all(first, changed):
        inside = {os.path.relpath(path, root).replace(os.sep, "/") for path in paths}

        def wanted(source: str, inside: set[str] = inside) -> bool:
            """Return whether a file changed, or a folder that it is in, which may have come as a whole."""
            return any(source == each or source.startswith(f"{each}/") for each in inside)

        forget = forget_deleted and not all(os.path.lexists(os.path.join(root, each)) for each in inside)
        source = Source(importer, folder, zone, forget_deleted=forget, wanted=wanted, **options)
        report = import_source(memory, source)
        if report != ImportReport():
            yield report


def _all(first: set[str], rest: Iterator[set[str]]) -> Iterator[set[str]]:
    """Yield the sets that are not empty."""
    if first:
        yield first
    yield from (each for each in rest if each)


def library() -> ModuleType:
    """Return the library that watches.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import watchfiles
    except ImportError:
        raise MissingExtraError("watching a folder", "watchfiles", "watch") from None
    return watchfiles


def _changes(root: str) -> Iterator[set[str]]:
    for found in library().watch(root, yield_on_timeout=True, rust_timeout=_WAIT_MS, raise_interrupt=True):
        yield {path for _, path in found}
