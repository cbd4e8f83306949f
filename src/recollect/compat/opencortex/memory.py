"""`OpencortexMemory`: the functions of opencortex as methods, on the outlines of one memory."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import recollect
from recollect.compat.opencortex.objects import OrgObject, SimilarObject, hash_of_values, object_of
from recollect.compat.opencortex.paths import memory_path
from recollect.compat.opencortex.trees import as_node, of_property, plain
from recollect.errors import DamagedStoreError, InvalidArgumentError, UnsupportedError
from recollect.facets.outline.text.nodes import ID, TITLE
from recollect.facets.outline.values import ANY, OutlineNode

_IN_MEMORY = ":memory:"


class OpencortexMemory:
    """Objects with Merkle hashes, history, snapshots and semantic search.

        with OpencortexMemory("memory.db") as memory:
            memory.ingest_ast({"type": "HEADLINE", "properties": {"ID": "boats", "TITLE": "Boats"}})
            memory.lookup_object("boats")

    Every call raises InvalidArgumentError for an invalid argument and StoreError if the store fails. It may be used by
    several threads, and the same file by several processes.

    Args:
        source: The path of the file, ":memory:", or a `recollect.Memory`, of which the outlines are used and which
            `close` leaves open. Default: `memory_path()`, whose folder is created. A missing file is an empty memory.

    Raises:
        StoreError: The file cannot be opened, or is no memory. It is left as it is.
    """

    def __init__(self, source: str | os.PathLike[str] | recollect.Memory | None = None) -> None:
        self._lock = threading.Lock()
        self._given = source
        self._memory = source if isinstance(source, recollect.Memory) else recollect.open(_path_of(source))

    @property
    def memory(self) -> recollect.Memory:
        """The memory, with everything else: `memory.outline` has the native calls."""
        return self._memory

    # Objects

    def ingest_ast(self, ast: Mapping[str, Any], parent_id: str | None = None) -> str:
        """Store a tree of an editor in one commit, and return the id of its root.

        Of a tree that is stored, only what differs is written, so the same one again adds nothing. Nodes without an ID
        get a unique one. What was below its root and is in the tree no more is removed.

        Args:
            ast: {"type", "properties": {"ID", "TITLE", ...}, "raw-content", "contents"}, of which only the type is
                required. Names may be keywords of Lisp, such as ":RAW-CONTENT". Texts among the contents are the text
                of a node without raw content.
            parent_id: The object whose last child the root becomes. None: the root stays where it is, and a new one is
                at the top.

        Raises:
            ImportFormatError: It is not such a tree; the message says where. Nothing was stored.
            UnknownRecordError: There is no object with the id `parent_id`. Nothing was stored.
        """
        return self.memory.outline.ingest(as_node(ast), parent=parent_id).root

    def lookup_object(self, id: str) -> OrgObject | None:  # noqa: A002 - the name of opencortex
        """Return an object, or None if there is none with this id.

        Cost:
            O(log n), and the children.
        """
        view = self.memory.outline.view(id, depth=1)
        return next((object_of(node, view) for node in view), None)

    def list_objects_by_type(self, type: str) -> list[OrgObject]:  # noqa: A002 - the name of opencortex
        """Return the objects of a type, in any case, with or without a colon, in the order of their ids.

        Cost:
            In proportion to the result and its children.
        """
        if not isinstance(type, str):
            raise InvalidArgumentError("type", type, "must be text")
        return self._objects(self.memory.outline.find(kind=plain(type)))

    def list_objects_with_attribute(self, attribute: str, value: Any = None) -> list[OrgObject]:
        """Return the objects that have an attribute, in the order of their ids.

        Args:
            attribute: Its name, with or without a colon.
            value: Only objects with this value; None: any value.

        Cost:
            All records are read unless a filter can use an index, and the children of the result.
        """
        if not isinstance(attribute, str) or not plain(attribute):
            raise InvalidArgumentError("attribute", attribute, "must be text that is not empty")
        outline, name = self.memory.outline, of_property(attribute)
        if name not in (ID, TITLE):
            return self._objects(outline.find(attribute=name, value=ANY if value is None else value))
        own = [(node, node.title if name == TITLE else node.id if node.named else None) for node in outline.find()]
        return self._objects(node for node, has in own if has is not None and value in (None, has))

    def semantic_search(self, query: str, limit: int = 10, minimum: float = 0.5) -> list[SimilarObject]:
        """Return the objects that are most similar to a text, most similar first.

        The similarity is the cosine of the vectors of the memory's embedder (RECOLLECT_EMBEDDER). Without one, or while
        it fails, it is the confidence of the words, and a failure is a RecollectWarning. If any object has an attribute
        EMBED, only those are searched.

        Args:
            query: The text that the objects are compared with.
            limit: Maximum number of objects.
            minimum: The least similarity, inclusive; 0 to 1.
        """
        found = self.memory.outline.search(query, limit, minimum=minimum)
        for note in found.notes:
            warnings.warn(note, recollect.RecollectWarning, stacklevel=2)
        objects = ((self.lookup_object(each.node.id), each.similarity) for each in found)
        return [SimilarObject(each, similarity) for each, similarity in objects if each is not None]

    def compute_merkle_hash(
        self,
        id: str,  # noqa: A002 - the name of opencortex
        type: str | None = None,  # noqa: A002 - the name of opencortex
        attributes: Mapping[str, Any] | None = None,
        content: str | None = None,
        children: Iterable[str] = (),
    ) -> str:
        """Return the Merkle hash of an object, as 64 hex digits: that of a stored one, or that of values.

        With the values of an object that `ingest_ast` has stored, both are equal. The format is our own
        (`recollect.facets.outline.text.nodes`): each part is preceded by its length, so no content poses as another
        object. The order of the attributes does not matter, and that of the children does.

        Args:
            id: The id of the object. Without a type, it must be stored.
            type: Its type.
            attributes: Its attributes; ID and TITLE do not count, since they are in the id and in the content.
            content: Its content; None if it has none.
            children: The hashes of its children in their order.

        Raises:
            UnknownRecordError: There is no such object.
        """
        if type is None:
            if attributes is not None or content is not None or children != ():
                raise InvalidArgumentError("type", type, "is required for the hash of values")
            return self.memory.outline.hash(id)
        return hash_of_values(id, type, attributes, content, children)

    def _objects(self, nodes: Iterable[OutlineNode]) -> list[OrgObject]:
        found = (self.lookup_object(node.id) for node in nodes)
        return [each for each in found if each is not None]

    # Snapshots

    def snapshot_memory(self) -> recollect.Snapshot:
        """Mark the state of all objects. The newest 20 stay.

        Cost:
            One durable write, however many objects there are.
        """
        return self.memory.outline.snapshot()

    def rollback_memory(self, index: int = 0) -> recollect.Restored:
        """Restore all objects as they were at a snapshot, in a new commit. No version is lost.

        Args:
            index: The age of the snapshot; 0: the newest.

        Raises:
            UnknownTargetError: There is no such snapshot. Nothing was changed.
        """
        return self.memory.outline.rollback(index=index)

    # The file

    def save_memory_to_disk(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Return the path of the file that has everything, or of a copy. Every call is durable before it returns.

        Args:
            path: Copy the file to this path, where only an older backup is replaced. Default: nothing is copied.

        Raises:
            UnsupportedError: The memory is not in a file.
            StoreError: Copying failed. What was at `path` is still there.
        """
        own = self._own_path()
        if own is None:
            raise UnsupportedError("saving this memory", "it is not in a file")
        if path is None or os.path.realpath(path) == os.path.realpath(own):
            return own
        self.memory.backup(path)
        return Path(path)

    def load_memory_from_disk(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Open the file again, or another one, check all of it, and return its path.

        Args:
            path: The path of another file. Default: the same; with the path of the environment, as it is now.

        Raises:
            UnsupportedError: The memory is not in a file, or was passed as a `recollect.Memory`.
            StoreError: The file cannot be opened, or is corrupt. The memory that was open stays open.

        Cost:
            Reads and hashes everything in the file.
        """
        if isinstance(self._given, recollect.Memory):
            raise UnsupportedError("loading this memory", "it belongs to the program that opened it")
        source = self._given if path is None else path
        file = _path_of(source)
        if str(file) == _IN_MEMORY:
            raise UnsupportedError("loading this memory", "it is not in a file")
        with self._lock:
            memory = _intact(file)
            before, self._memory, self._given = self._memory, memory, source
        before.close()
        return file

    def _own_path(self) -> Path | None:
        path = self.memory.stats()["store"]["path"]
        return None if path == _IN_MEMORY else Path(path)

    def close(self) -> None:
        """Close the file, unless the memory was passed."""
        if not isinstance(self._given, recollect.Memory):
            self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _intact(file: Path) -> recollect.Memory:
    """Return the memory of a file, after all of it was checked."""
    memory = recollect.open(file)
    try:
        if problems := memory.check():
            raise DamagedStoreError(str(file), problems[0])
    except BaseException:
        memory.close()
        raise
    return memory


def _path_of(source: str | os.PathLike[str] | None) -> Path:
    """Return the path of a file. The folder of the one from the environment, or in the data folder, is created."""
    if source is not None:
        return Path(source)
    path = memory_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
