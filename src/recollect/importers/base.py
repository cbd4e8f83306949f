"""What every importer is made of: items, damage, the protocol, and reading files without surprises.

An importer turns one kind of source into items to remember. It promises that the same source gives the same items,
each with an id or a position of its own, so that a second run finds them held; that nothing is left out in silence:
what cannot be read is `Damage`, by its place; and that whatever the bytes are, reading raises ImportFormatError or
nothing. It leaves to `run` what becomes of the items, and to `Record` whether a field's value is valid.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from recollect.errors import ImportFormatError, printable
from recollect.records.record import MAX_ID_BYTES
from recollect.stores.files import open_regular
from recollect.text.unicode import nfc

LEADS_OUT = "is a link out of the folder (--follow-links, follow_links=True reads it)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to remember.

    namespace  where it belongs; None: the namespace that the user named
    fields     what `memory.remember_all` takes: "content", perhaps "id", and fields of a record
    place      where in the source it stands, for a person; things are counted from 1 ("session_3, turn 7")
    """

    namespace: str | None
    fields: dict[str, Any]
    place: str


class Damage(NamedTuple):
    """Something in the source that could not be remembered; the rest is."""

    place: str
    reason: str


class Promise(NamedTuple):
    """The root that a namespace has once it holds the items that were given for it, and nothing else."""

    namespace: str | None
    root: str


class Importer(Protocol):
    """A format that memories are imported from.

    name     by which a person asks for it
    summary  one line for --help
    exact    the items are whole records, to be held exactly as they are, whatever is held under their ids
    """

    name: str
    summary: str
    exact: bool

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | Promise]:
        """The items of the source at `path`, in its order. Times without an offset are taken in `zone`.

        follow_links  whether a link within a folder is followed to what lies outside it. The path itself may be a link

        Raises: ImportFormatError, before anything is given, where the source is not of this format at all.
        """
        ...


class UnreadableError(ValueError):
    """A value of the source is not what the format says. The message is the reason that a person is given."""


def format_error(path: Path, place: str, rule: str) -> ImportFormatError:
    """The error for a source that is not of the format."""
    return ImportFormatError(printable(path), place, rule)


def bounded_id(text: str) -> str:
    """`text` as a record's id: itself where it is short enough, else its beginning and a digest of all of it.

    >>> bounded_id("notes.txt#3"), len(bounded_id("long" * 100))
    ('notes.txt#3', 255)
    """
    raw = nfc(text).encode("utf-8", "surrogatepass")  # a lone surrogate is the record's to refuse
    if len(raw) <= MAX_ID_BYTES:
        return nfc(text)
    digest = hashlib.sha256(raw).hexdigest()[:32]
    return raw[: MAX_ID_BYTES - len(digest) - 1].decode("utf-8", "ignore") + "~" + digest


class SeenIds:
    """The ids of one conversation. The second turn of an id is told by its position instead: neither is lost."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def own(self, given: object) -> dict[str, Any]:
        """The field "id" where the source gives one that is new; else no field."""
        if given is None or given == "":
            return {}
        if not isinstance(given, str):
            raise UnreadableError(f"its id is {kind_of(given)}, not text")
        own = bounded_id(given)
        if own in self._seen:
            return {}
        self._seen.add(own)
        return {"id": own}


def kind_of(value: object) -> str:
    """What a JSON value is, for a message."""
    names: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "missing" if value is None else names.get(type(value), "a number")


def open_file(path: Path, *, follow: bool = True) -> BinaryIO:
    """A regular file, opened for reading: a pipe or a device, which may never end, is refused. Raises: OSError."""
    return os.fdopen(open_regular(os.fspath(path), follow=follow), "rb")


def read_text(path: Path, *, follow: bool = True) -> str:
    """The text of a UTF-8 file, without its byte order mark. Raises: ImportFormatError.

    follow  whether the path may be a link
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
    """The operating system's reason, in words."""
    if isinstance(error, IsADirectoryError):
        return "is a folder; a file is expected"
    if getattr(error, "errno", None) in (errno.EINVAL, errno.ENXIO):  # ENXIO: a socket, or a device without a driver
        return "is not a regular file"
    return f"cannot be read ({printable(getattr(error, 'strerror', None) or error)})"


def parse_json(text: str) -> Any:
    """A JSON value. Raises: UnreadableError saying what is wrong with it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"is not JSON ({error})") from None
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    except ValueError:  # Python refuses to make a number of thousands of digits
        raise UnreadableError("holds a number with too many digits") from None


def load_json(path: Path) -> Any:
    """The JSON value of a file. Raises: ImportFormatError."""
    text = read_text(path)
    try:
        return parse_json(text)
    except UnreadableError as error:
        raise format_error(path, "", str(error)) from None


class Found(NamedTuple):
    """A file below a folder: its path below that, and where it is to be read, which is no link."""

    source: str
    path: Path


def leads_out(folder: Path, path: Path) -> bool:
    """Whether a path within a folder is one to something outside it."""
    root, real = os.path.realpath(folder), os.path.realpath(path)
    return os.path.commonpath((root, real)) != root


def files_below(folder: Path, suffixes: tuple[str, ...], *, follow_links: bool) -> Iterator[Found | Damage]:
    """The files of a folder and its subfolders that end in one of `suffixes`, in order; hidden ones are passed over.

    follow_links  whether those are read, too, that are links to files outside the folder. Links to folders never are

    What carries such a name and is no file, and a subfolder that cannot be listed, is damage.
    """
    unlisted: list[Damage] = []

    def note(error: OSError) -> None:
        unlisted.append(Damage(_below(folder, Path(error.filename)), why_unreadable(error)))

    found: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if not name.startswith(".")]
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
            yield Found(path.relative_to(folder).as_posix(), Path(os.path.realpath(path)))


def _ends(name: str, suffixes: tuple[str, ...]) -> bool:
    return Path(name).suffix.lower() in suffixes


def _below(folder: Path, path: Path) -> str:
    return printable(path.relative_to(folder).as_posix())
