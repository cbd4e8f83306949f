"""The files derived from a store: index files, the full-text index, uses, vectors and tiles of the log."""

from __future__ import annotations

from recollect.stores.derived.cleaned import CleanedFile
from recollect.stores.derived.fulltext import FullText
from recollect.stores.derived.log_tiles import LogTileFile
from recollect.stores.derived.segment_files import SegmentFiles
from recollect.stores.derived.shared import SharedSegments, SharedVectors
from recollect.stores.derived.shared_vectors import SharedVectorFile
from recollect.stores.derived.sharing import SegmentSharing
from recollect.stores.derived.usage import UsageFile
from recollect.stores.derived.vectors import VectorFile
from recollect.stores.sealing.keys import Unlocked


class DerivedFiles:
    """Creates what is derived from a store. Each call returns a new object, which the caller closes.

    Everything but the vectors is rebuilt if it is deleted.

    Args:
        folder: The folder, such as `FILE.index`, created with mode 0700 when first needed; None keeps all in memory.
        uuid: The uuid of the store. Files of another store in that folder are replaced.
        key: The store's key.
        read_only: Write nothing: files that exist are read, and the rest is in memory.
        of_machine: The folder is not the one of all processes that use the store, but of those of this machine.
        segments: The segments that machines share; None if they share none.
        vectors: The vectors that machines share; None if they share none.
        keys: The data keys of an encrypted store, with which all files are encrypted, too.

    Attributes:
        uuid: The uuid of the store.
    """

    def __init__(
        self,
        folder: str | None,
        uuid: str,
        key: bytes,
        *,
        read_only: bool = False,
        of_machine: bool = False,
        segments: SharedSegments | None = None,
        vectors: SharedVectors | None = None,
        keys: Unlocked | None = None,
    ) -> None:
        self._keys = keys
        self._of_machine = of_machine
        self._shared_segments = segments
        self._shared_vectors = vectors
        self._key = key
        self._folder = folder
        self.uuid = uuid
        self._read_only = read_only

    def segments(self) -> SegmentFiles | None:
        """Return the segment files; None in memory."""
        if self._folder is None:
            return None
        return SegmentFiles(self._folder, self.uuid, read_only=self._read_only, keys=self._keys)

    def sharing(self, files: SegmentFiles | None) -> SegmentSharing | None:
        """Return what this machine shares of its segment files with others; None if it shares nothing."""
        if files is None or self._shared_segments is None:
            return None
        return SegmentSharing(files, self._shared_segments)

    def full_text(self) -> FullText:
        """Return the full-text index."""
        return FullText(None if self._read_only else self._folder, self.uuid, keys=self._keys)

    def uses(self) -> UsageFile:
        """Return the uses of the records."""
        return UsageFile(None if self._read_only else self._folder, self.uuid, keys=self._keys)

    def vectors(self) -> VectorFile:
        """Return the vectors of the texts."""
        if self._shared_vectors is not None:
            return SharedVectorFile(self._folder, self.uuid, self._key, self._shared_vectors)
        return VectorFile(self._folder, self.uuid, self._key, read_only=self._read_only, keys=self._keys)

    def log_tiles(self) -> LogTileFile:
        """Return the tiles of the log trees."""
        return LogTileFile(self._folder, self.uuid, read_only=self._read_only, keys=self._keys)

    def cleaned(self) -> CleanedFile | None:
        """Return up to which commits this machine has removed what was erased; None: who erases does it for all."""
        return CleanedFile(self._folder, self.uuid) if self._of_machine else None
