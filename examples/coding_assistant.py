"""A coding assistant that learns preferences, notices when they change, and keeps what it is not told to keep secret.

    python examples/coding_assistant.py

Output:

    noted: favourite editor = vim
    noted: nothing, because the text contains a key, token or password
    changed: favourite editor from vim to helix
    now: My favourite editor is helix
    before: My favourite editor is vim (until 2026-03-02)
    - always run the tests before a commit
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import recollect
from recollect.agents import Manager
from recollect.errors import RejectedError

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
SAID = (
    "My favourite editor is vim",
    "The deploy token=abc123 is for staging",
    "always run the tests before a commit",
    "My favourite editor is helix",
)


def main() -> None:
    days = iter(range(1000))
    with recollect.open(":memory:", clock=lambda: START + timedelta(hours=6 * next(days))) as store:
        store.set_policies(redaction="refuse", categories=["secret"])
        memory = store.scoped(user="dev")
        manager = Manager(memory=memory, contradictions="supersede")
        for text in SAID:
            try:
                recorded = manager.record_user_fact(text)
            except RejectedError as error:
                print(f"noted: nothing, because the text {error.verdict.reason}")
                continue
            for found in recorded.contradictions:
                print(f"changed: {found.attribute} from {found.values[0]} to {found.values[1]}")
            if not recorded.contradictions and "attribute" in recorded.record.metadata:
                print(f"noted: {recorded.record.metadata['attribute']} = {recorded.record.metadata['value']}")
        for record in memory.find(recollect.filters.meta("attribute"), order="newest"):
            if record.valid_to is None:
                print("now:", record.content)
            else:
                print("before:", record.content, f"(until {record.valid_to.date()})")
        for hit in memory.recall("what should I do before a commit?", k=1):
            print("-", hit.record.content)


if __name__ == "__main__":
    main()
