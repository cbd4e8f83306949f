"""What the Merkle trie of a corrupt store still proves: which version of a record was live, or that none was."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.ledger.merkle import EMPTY, Child, Leaf, Root, decode_page, leaf_hash_at, page_hash, path_in_log


class SavedLeaves:
    """The leaves of the Merkle trie under a root, as far as its pages match their hashes.

    The hashes of pages do not cover the path that a leaf states. A leaf is therefore assigned to an id only if it is
    the leaf hash of that id and a known version. Any other leaf makes its path in the trie uncertain.

    Attributes:
        found: The identified leaves, by id.
        versions: The versions of the identified leaves, by leaf.
    """

    def __init__(self, root: Root | None, nodes: dict[int, bytes]) -> None:
        self._unidentified: dict[bytes, str] = {}  # the paths of leaves that are not identified, in hex
        self.found: dict[str, bytes] = {}
        self.versions: dict[bytes, bytes] = {}
        self._uncertain: set[str] = {""} if root is None else set()  # the paths of lost pages and such leaves, in hex
        pending: list[tuple[str, Root | Child]] = [] if root is None or root.hash == EMPTY else [("", root)]
        while pending:
            path, child = pending.pop()
            try:
                page = decode_page(nodes[child.page])
            except (KeyError, ValueError):
                self._uncertain.add(path)
                continue
            if page_hash(page)[0] != child.hash:
                self._uncertain.add(path)
                continue
            for slot, item in enumerate(page):
                if isinstance(item, Leaf):
                    self._unidentified[item.hash] = f"{path}{slot:x}"
                elif item is not None:
                    pending.append((f"{path}{slot:x}", item))

    def identify(self, versions: Iterable[tuple[bytes, str]]) -> None:
        """Identify the leaves of these versions of these ids."""
        for digest, record_id in versions:
            leaf = leaf_hash_at(path_in_log(record_id), digest)
            if self._unidentified.pop(leaf, None) is not None:
                self.found[record_id] = leaf
                self.versions[leaf] = digest

    def leaf_of(self, record_id: str) -> bytes | None:
        """Return the identified leaf of an id; None if there is none."""
        return self.found.get(record_id)

    def proves_absence(self, record_id: str) -> bool:
        """Return whether an id without an identified leaf has none: everything on its path in the trie is readable.

        Call it after all calls of `identify`.
        """
        if self._unidentified:
            self._uncertain.update(self._unidentified.values())
            self._unidentified.clear()
        path = path_in_log(record_id).hex()
        return not any(path[:length] in self._uncertain for length in range(len(path)))
