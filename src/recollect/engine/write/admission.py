"""Admission: the policies of the namespace, applied to a text before it is stored, compared or given an id.

So a list that is passed again is compared with what was stored of it, and nothing is derived from what is redacted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.engine.facets import NAMES
from recollect.engine.results import Failed
from recollect.engine.settings import Policies
from recollect.engine.write.drafts import Draft
from recollect.errors import RejectedError
from recollect.operations.upkeep import HANDLINGS
from recollect.policies import WHY, judge
from recollect.policies.flags import flags
from recollect.records.messages import Turn
from recollect.records.origins import OWNER, USER, Origin
from recollect.records.record import Record
from recollect.records.redacted import redacted_texts

_WORDS = {
    "secret": "a key, token or password",
    "email": "an e-mail address",
    "card": "the number of a payment card",
    "iban": "an IBAN",
    "phone": "a phone number",
    "national_id": "an identity number",
}


class Admission:
    """The policies of a namespace, applied to texts.

    Attributes:
        policies: The policies.
        keeps_away: Whether some records are quarantined or refused for their class of origin, or for how they look.
    """

    def __init__(self, policies: Policies) -> None:
        self.policies = policies
        self.keeps_away = bool(policies.origins) or policies.flagged != "store"

    @property
    def is_open(self) -> bool:
        """True if every text is stored as it is."""
        return self.policies.redaction == "keep" and self.policies.salience == "off"

    def draft(self, draft: Draft) -> Draft:
        """Return a draft as it may be stored.

        Raises:
            RejectedError: It may not be stored.
        """
        record = self.record(draft.record)
        if record is draft.record:
            return draft
        draft = draft._replace(record=record)
        return draft if draft.own_id else draft.with_id(draft.derived_id())

    def record(self, record: Record, before: Record | None = None) -> Record:
        """Return a record as it may be stored. What it has in common with the stored record `before` stays as it is.

        Raises:
            RejectedError: It may not be stored.
        """
        texts = {name: getattr(record, name) for name in ("content", "metadata")}
        texts = {name: text for name, text in texts.items() if before is None or getattr(before, name) != text}
        if record.kind not in NAMES and record.searchable:  # a question never returns the others
            self._judge(texts.get("content"))
        changed = self._texts(texts)
        return record.changed(**changed) if changed else record

    def handling(self, origin: Origin, text: str) -> tuple[str, ...]:
        """Return what happens to a text by its class of origin and by how it looks, why, and what was found in it."""
        if origin in (OWNER, USER):
            return ("store", "")
        handling, why = self.policies.origins.get(origin, "store"), f"is of the class {origin}"
        found: tuple[str, ...] = ()
        flagged = self.policies.flagged
        if HANDLINGS.index(flagged) > HANDLINGS.index(handling):
            found = tuple(dict.fromkeys(each.signal for each in flags(text)))
            if found:
                handling, why = flagged, f"looks like an attack ({_listed(found)}), and {why}"
        return (handling, why, *found)

    def text(self, text: str) -> str:
        """Return a text as it may be stored.

        Raises:
            RejectedError: It may not be stored.
        """
        self._judge(text)
        changed = self._texts({"content": text})
        return str(changed.get("content", text))

    def turn(self, turn: Turn) -> Turn:
        """Return a message as it may be stored.

        Raises:
            RejectedError: It may not be stored.
        """
        self._judge(turn.content)
        changed = self._texts({"content": turn.content, "metadata": turn.metadata})
        return turn._replace(**changed) if changed else turn

    def _judge(self, content: object) -> None:
        """Raise RejectedError for a text that is not worth remembering."""
        if self.policies.salience == "off" or not isinstance(content, str):
            return
        verdict = judge(content, self.policies.salience)
        if not verdict.accepted:
            raise RejectedError("salience", WHY[verdict.reason], verdict.reason)

    def _texts(self, texts: dict[str, Any]) -> dict[str, Any]:
        """Return those of some texts that the policies change."""
        if self.policies.redaction == "keep":
            return {}
        changed, found = redacted_texts(texts, self.policies.categories)
        if found and self.policies.redaction == "refuse":
            raise RejectedError("redaction", f"contains {_listed([_WORDS[each] for each in found])}", *found)
        return changed

    def drafts(
        self, drafts: Sequence[tuple[int, Draft]], items: Sequence[Any]
    ) -> tuple[list[tuple[int, Draft]], list[Failed]]:
        """Return the drafts that may be stored, each with its index, and the items that may not."""
        if self.is_open:
            return list(drafts), []
        admitted: list[tuple[int, Draft]] = []
        rejected: list[Failed] = []
        for index, each in drafts:
            try:
                admitted.append((index, self.draft(each)))
            except RejectedError as error:
                rejected.append(Failed(items[index], index, error))
        return admitted, rejected


def _listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    >>> _listed(["an IBAN"]), _listed(["an IBAN", "a phone number", "a card"])
    ('an IBAN', 'an IBAN, a phone number and a card')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
