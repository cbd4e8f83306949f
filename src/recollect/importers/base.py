"""The parts of every importer: items, damage, the protocol, and safe reading of files.

An importer converts one kind of source to items to remember. It promises that the same source yields the same items,
each with its own id or position, so that a second run finds them stored; that nothing is skipped silently: a part that
cannot be read is yielded as `Damage` with its location; and that reading any bytes raises ImportFormatError or nothing.
`run` stores the items, and `Record` validates their fields.
"""

from __future__ import annotations

import copy
import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

from recollect.common.zones import name_of
from recollect.errors import ImportFormatError, InvalidArgumentError, RecollectError
from recollect.ledger.parts import RECORDS
from recollect.quoting import printable
from recollect.records.documents import bounded_id
from recollect.records.messages.values import UnreadableError, kind_of, within_years
from recollect.stores.files import open_regular

if TYPE_CHECKING:
    from recollect.engine.results import Outcome
    from recollect.memory import Memory

LEADS_OUT = "is a link to a file outside the folder (--follow-links or follow_links=True reads it)"


def check_memory(memory: object) -> None:
    """Raise InvalidArgumentError unless it is a `Memory`."""
    from recollect.memory import Memory

    if not isinstance(memory, Memory):
        raise InvalidArgumentError("memory", memory, "must be a Memory (with asyncio, run this in a thread)")


#: What became of an item: its outcome, why it was not stored, or None if it has expired.
Stored: TypeAlias = "Outcome | RecollectError | UnreadableError | None"


class ItemForm(Protocol):
    """How items are stored that are not records yet, such as those that an adapter of `recollect.compat` is to read."""

    def store(self, memory: Memory, items: Sequence[Item]) -> list[Stored]:
        """Store items, and return what became of each.

        Args:
            memory: Where to store them.
            items: Items of this form, in the order of the source. No group of them is divided.

        Raises:
            StoreError: The store failed. What was committed stays.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to remember.

    Attributes:
        namespace: The namespace it belongs to. None: the namespace that the user chose.
        fields: A mapping for `memory.remember_all`: "content", "id" if it has one, and fields of a record.
        place: Its location in the source, for people, counted from 1 ("session_3, turn 7").
        exact: It is a complete record, to be stored exactly as it is, replacing the record that has its id.
        part: The part of the memory that it belongs to: "records", or what a facet keeps, such as "terms".
        dated_by: What its time is of, if the source states none for it: "the turn before" (`times`).
        file: The file that it is in, of a source of several; "": the source itself.
        placed: It is a turn whose conversation, position and branch are those of the source, also if it was imported
            before: another branch may be shown now. So are the facts about the conversation in its metadata.
        stays_in: The conversation in which it is moved, among its branches: a turn that was imported in another one
            stays there. "": it is moved from any.
        form: How it is stored; its `fields` are what the form takes. None: as the record that its fields state.
        group: Items of a form with the same group that follow each other are stored together.
    """

    namespace: str | None
    fields: dict[str, Any]
    place: str
    exact: bool = False
    part: str = RECORDS
    dated_by: str = ""
    file: str = ""
    placed: bool = False
    stays_in: str = ""
    form: ItemForm | None = None
    group: str = ""


class Damage(NamedTuple):
    """A part of the source that could not be remembered. The other parts are.

    Attributes:
        place: Its location in the source.
        reason: Why.
        file: The file that it is in, as in `Item`.
    """

    place: str
    reason: str
    file: str = ""


class ImportedDocument(NamedTuple):
    """All items of one document, in its order. They replace those of an earlier import of it (`replacing`).

    Attributes:
        source: The field `source` of its records.
        items: Its items. Each has an "id" of its own.
    """

    source: str
    items: tuple[Item, ...]


class Promise(NamedTuple):
    """The root that a part of a namespace has if it contains the items of the source for it and nothing else.

    Attributes:
        namespace: The namespace; None as in `Item`.
        root: The root, in hex digits.
        part: The part, as in `Item`.
    """

    namespace: str | None
    root: str
    part: str = RECORDS


class UnreadFile(NamedTuple):
    """A file of the source that the importer does not read, such as a picture beside the conversations.

    Attributes:
        file: The file, as in `Item`.
    """

    file: str


class Omission(NamedTuple):
    """What the source has and an import does not store, though it can be read, such as embeddings.

    Attributes:
        what: A noun in the plural.
        number: How many there are.
    """

    what: str
    number: int


#: What an importer yields.
Part = Item | ImportedDocument | Damage | Promise | UnreadFile | Omission


@runtime_checkable
class Importer(Protocol):
    """A format from which records are imported.

    It may also have an `origin`: the class of origin of its records (docs/trust.md), at most. Without one, it is what
    their roles and sources imply.

    Attributes:
        name: The name of the format on the command line.
        summary: One line about it.
    """

    name: str
    summary: str

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Part]:
        """Yield the items of a source, in its order.

        Args:
            path: The file or folder. It may be a link.
            zone: The time zone of times without an offset.
            follow_links: Whether links within a folder to files outside of it are followed.

        Raises:
            ImportFormatError: The source does not have this format. Raised before anything is yielded.
        """


class TurnImporter:
    """The part of an importer that names conversations which have no name in the source.

    The ids and positions of turns depend on the name, so the importer must know it before it reads.
    """

    #: The name; None: the importer derives one from the file's name, or leaves it out.
    default_conversation: str | None = None

    def called(self, conversation: str) -> Self:
        """Return a copy of the importer with this name."""
        named = copy.copy(self)
        named.default_conversation = conversation
        return named


class NamedImporter:
    """The part of an importer whose sources consist of parts with names, such as collections."""

    #: The names of the parts to import; none: all.
    wanted: tuple[str, ...] = ()

    def only(self, names: Sequence[str]) -> Self:
        """Return a copy of the importer that imports these parts."""
        chosen = copy.copy(self)
        chosen.wanted = tuple(dict.fromkeys(names))
        return chosen

    def check_wanted(self, path: Path, there: Sequence[str], word: str) -> None:
        """Raise ImportFormatError if the source lacks a part that is wanted."""
        for name in self.wanted:
            if name not in there:
                listed = ", ".join(map(printable, there[:20])) + (" and others" if len(there) > 20 else "")
                rule = f"has no {word} {printable(name)!r}" + (f": it has {listed}" if there else "")
                raise format_error(path, "", rule)


class NoticedZone(tzinfo):
    """A time zone that notes whether a time was in it: only times without an offset of their own are.

    Args:
        zone: The time zone; None: that of the memory, which is opened after the source.
    """

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self.used = False

    def settle(self, zone: tzinfo) -> None:
        """Take the time zone of the memory, unless one was passed."""
        self._zone = self._zone or zone

    @property
    def name(self) -> str:
        """The name of the time zone."""
        return name_of(self._settled)

    @property
    def _settled(self) -> tzinfo:
        assert self._zone is not None, "the time zone of the memory is not known yet"
        return self._zone

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        self.used = True
        return self._settled.utcoffset(when)

    def dst(self, when: datetime | None) -> timedelta | None:
        return self._settled.dst(when)

    def tzname(self, when: datetime | None) -> str | None:
        return self._settled.tzname(when)


def format_error(path: Path, place: str, rule: str) -> ImportFormatError:
    """Return the error for a source that does not have the format."""
    return ImportFormatError(printable(path), place, rule)


def in_file(file: str, parts: Iterator[Item | Damage]) -> Iterator[Item | Damage]:
    """Yield what a file of a source of several contains."""
    for each in parts:
        yield replace(each, file=file) if isinstance(each, Item) else each._replace(file=file)


class SeenIds:
    """The ids of one conversation. A second turn with an id is identified by its position, so that neither is lost."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def own(self, value: object) -> dict[str, Any]:
        """Return the field "id" if the source has an id that is new in the conversation, otherwise no field.

        Raises:
            UnreadableError: The id is not text.
        """
        if value is None or value == "":
            return {}
        if not isinstance(value, str):
            raise UnreadableError(f"its id is {kind_of(value)}, not text")
        own = bounded_id(value)
        if own in self._seen:
            return {}
        self._seen.add(own)
        return {"id": own}


def open_file(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading. A pipe or a device, which may never end, is refused.

    Raises:
        OSError: It cannot be opened, or is not a regular file.
    """
    return os.fdopen(open_regular(os.fspath(path), follow=follow), "rb")


def read_text(path: Path, *, follow: bool = True) -> str:
    """Read a UTF-8 file, without its byte order mark.

    Args:
        path: The file.
        follow: Whether the path may be a link.

    Raises:
        ImportFormatError: It cannot be read, or is not UTF-8.
    """
    try:
        with open_file(path, follow=follow) as file:
            raw = file.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise format_error(path, "", why_unreadable(error)) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise format_error(path, f"byte {error.start}", "is not text in UTF-8") from None


def why_unreadable(error: OSError | ValueError) -> str:
    """Return the operating system's reason, for a message."""
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a file"
    if getattr(error, "errno", None) in (errno.EINVAL, errno.ENXIO):  # ENXIO: a socket, or a device without a driver
        return "is not a regular file"
    return f"cannot be read ({printable(getattr(error, 'strerror', None) or error)})"


def parse_json(text: str) -> Any:
    """Parse a JSON value.

    Raises:
        UnreadableError: It is not valid JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"is not JSON ({error})") from None
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    except ValueError:  # Python limits the digits of an integer
        raise UnreadableError("contains a number with too many digits") from None


class JsonValue(NamedTuple):
    """A JSON value of a file of several, or why there is none, and its location."""

    place: str
    value: Any


def json_values(text: str) -> Iterator[JsonValue]:
    """Yield the JSON values of a text, one after the other, on one line or over several."""
    decoder = json.JSONDecoder()
    at, number, counted = 0, 1, 0  # `number`: the line of `counted`
    last, several = 0, 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        number += text.count("\n", counted, at)
        counted = at
        several = several + 1 if number == last else 1
        last = number
        place = f"line {number}" if several == 1 else f"line {number}, object {several}"
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield JsonValue(place, _why_not(text[at:end]))
            at = end
        else:
            yield JsonValue(place, value)


def _why_not(line: str) -> UnreadableError:
    try:
        parse_json(line)
    except UnreadableError as error:
        return error
    return UnreadableError("is not JSON")


def load_json(path: Path) -> Any:
    """Parse a JSON file.

    Raises:
        ImportFormatError: It cannot be read, or is not JSON.
    """
    text = read_text(path)
    try:
        return parse_json(text)
    except UnreadableError as error:
        raise format_error(path, "", str(error)) from None


class FoundFile(NamedTuple):
    """A file below a folder.

    Attributes:
        source: Its path relative to the folder.
        path: Its real path, which contains no link.
    """

    source: str
    path: Path


def leads_out(folder: Path, path: Path) -> bool:
    """Return whether a path within a folder leads to a file outside of it."""
    root, real = os.path.realpath(folder), os.path.realpath(path)
    return os.path.commonpath((root, real)) != root


def files_below(
    folder: Path, suffixes: tuple[str, ...] | None, *, follow_links: bool, deep: bool = True
) -> Iterator[FoundFile | Damage]:
    """Yield the files below a folder that have one of the suffixes, sorted by path. Hidden files are skipped.

    An entry with such a suffix that is not a file, and a subfolder that cannot be listed, is yielded as damage.

    Args:
        suffixes: The suffixes, in lower case; None: all files.
        follow_links: Whether links to files outside the folder are included. Links to folders never are.
        deep: Whether the files of its subfolders are, too.
    """
    unlisted: list[Damage] = []

    def note(error: OSError) -> None:
        unlisted.append(Damage(_below(folder, Path(error.filename)), why_unreadable(error)))

    found: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if deep and not name.startswith(".")]
        found += [Path(parent, name) for name in names if not name.startswith(".") and _ends(name, suffixes)]
    yield from unlisted
    for path in sorted(found, key=lambda path: path.relative_to(folder).parts):
        try:
            mode = path.stat().st_mode
        except OSError as error:
            yield Damage(_below(folder, path), why_unreadable(error))
            continue
        if not stat.S_ISREG(mode):
            yield Damage(_below(folder, path), "is not a regular file")
        elif not follow_links and leads_out(folder, path):
            yield Damage(_below(folder, path), LEADS_OUT)
        else:
            yield FoundFile(path.relative_to(folder).as_posix(), Path(os.path.realpath(path)))


def _ends(name: str, suffixes: tuple[str, ...] | None) -> bool:
    return suffixes is None or Path(name).suffix.lower() in suffixes


def _below(folder: Path, path: Path) -> str:
    return printable(path.relative_to(folder).as_posix())


#: English month names. `strptime("%B")` reads those of the locale.
_MONTHS = "january february march april may june july august september october november december".split()
_NUMBER_OF = {name: number for number, full in enumerate(_MONTHS, 1) for name in (full, full[:3])}


def local(year: int, month: str, day: int, hour: int, minute: int, zone: tzinfo) -> datetime:
    """Return the time of a clock in `zone`, with the month by its English name. Raises UnreadableError."""
    number = _NUMBER_OF.get(month.lower())
    if number is None:
        raise UnreadableError(f"{printable(month)!r} is not a month")
    try:
        return within_years(datetime(year, number, day, hour, minute, tzinfo=zone))
    except ValueError as error:
        raise UnreadableError(str(error)) from None
