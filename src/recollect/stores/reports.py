"""What a check and a compaction of a store report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recollect.arguments.json_form import JsonForm, is_result, json_form


@is_result()
class CheckReport(list[str]):
    """The problems that a check found: an empty list if there are none.

    It also counts what is missing on purpose, which is no problem.

    Attributes:
        commits: The number of commits in all logs.
        dropped: The number of commits whose roots have no stored pages. Their roots can be recomputed from the log.
        erased: The number of versions whose text was erased.
        thinned: The number of versions whose text a retention policy removed.
    """

    def __init__(
        self, problems: Iterable[str] = (), *, commits: int = 0, dropped: int = 0, erased: int = 0, thinned: int = 0
    ) -> None:
        super().__init__(problems)
        self.commits = commits
        self.dropped = dropped
        self.erased = erased
        self.thinned = thinned

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"problems": list(self), **vars(self)}

    @classmethod
    @json_form("a report of a check")
    def from_json(cls, data: Mapping[str, Any]) -> CheckReport:
        """Rebuild a report from its JSON form."""
        counts = {name: int(data[name]) for name in ("commits", "dropped", "erased", "thinned")}
        return cls(map(str, data["problems"]), **counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(JsonForm, what="a compaction"):
    """The result of a compaction.

    Attributes:
        before: The size of the store with its WAL before, in bytes; None if it is not a file.
        after: Its size afterwards.
        complete: Whether all free space was given back. Otherwise a reader still needs the former pages.
    """

    before: int | None
    after: int | None
    complete: bool
