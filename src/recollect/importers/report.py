"""The report of an import: what became of the items of a source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recollect.importers.base import Damage


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The outcomes of an import.

    Attributes:
        created: How many records were created.
        unchanged: How many were stored already.
        updated: How many were updated.
        replaced: How many documents had been imported before with other pieces, and were replaced.
        forgotten: How many records of such documents, and of deleted ones, were forgotten.
        differing: How many of the unchanged records have other values than in the source; the stored values were kept.
        moved: How many turns that were stored already are in another conversation, branch or position now.
        renumbered: How many got another id than their own, because a different text has it.
        expired: How many records of an export have expired, and were left out.
        dated: How many records state no time and have that of the turn before or after them, of their conversation, or
            of the name of their file.
        proposed: How many would change a record of a higher class of origin, and were stored beside it (docs/trust.md).
        quarantined: How many a policy put into quarantine.
        lowered: How many records of an export were of a higher class of origin than the writer may give
            (docs/trust.md). Their bytes, and so the root, are not those of the export.
        damaged: The parts that could not be remembered, in the order of the source.
        files: By the file of the source, how many items each outcome had: "created", "unchanged", "updated", "expired",
            and "damaged". Outcomes that no item had are left out. A file that was not read has none.
        left_out: What the source has and was not stored, though it can be read, such as embeddings, and how many.
        namespaces: How many items of the source each namespace contains.
        parts: How many items of the source each part of the memories contains, by its name.
        roots: By namespace, whether its root is now the one that the source promises. It is not if the namespace has
            other records too, or if the store has another key.
        zone_assumed: The name of the time zone in which times without an offset were read; None if there were none.
    """

    created: int = 0
    unchanged: int = 0
    updated: int = 0
    replaced: int = 0
    forgotten: int = 0
    differing: int = 0
    moved: int = 0
    renumbered: int = 0
    expired: int = 0
    dated: int = 0
    proposed: int = 0
    quarantined: int = 0
    lowered: int = 0
    damaged: tuple[Damage, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    namespaces: dict[str, int] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    files: dict[str, dict[str, int]] = field(default_factory=dict, compare=False)
    roots: dict[str, bool] = field(default_factory=dict)
    zone_assumed: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "created": self.created,
            "unchanged": self.unchanged,
            "updated": self.updated,
            "replaced": self.replaced,
            "forgotten": self.forgotten,
            "differing": self.differing,
            "moved": self.moved,
            "renumbered": self.renumbered,
            "expired": self.expired,
            "dated": self.dated,
            "proposed": self.proposed,
            "quarantined": self.quarantined,
            "lowered": self.lowered,
            "damaged": [damage._asdict() for damage in self.damaged],
            "left_out": dict(self.left_out),
            "namespaces": dict(self.namespaces),
            "parts": dict(self.parts),
            "files": {name: dict(counts) for name, counts in self.files.items()},
            "roots": dict(self.roots),
            "zone_assumed": self.zone_assumed,
        }
