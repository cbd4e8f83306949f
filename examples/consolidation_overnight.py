"""Put a memory in order at night: merge duplicates, report contradictions, and summarise what is old.

    python examples/consolidation_overnight.py

Output:

    duplicates: Ana drinks green tea | ana drinks green tea.
    contradiction: home, Rome or Oslo
    summarised: 12 turns of monday
    records: 18 before, 6 after
    - user: On day 0 the boat needed 5 liters of paint.
    taken back: 18 records
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import recollect

NOW = datetime(2026, 6, 1, 2, tzinfo=UTC)
OLD = NOW - timedelta(days=60)


def main() -> None:
    with recollect.open(":memory:", clock=lambda: NOW) as memory:
        messages = [
            {"role": "user", "content": f"On day {n} the boat needed {n + 5} liters of paint."} for n in range(12)
        ]
        memory.add_messages(messages, user="ana", conversation="monday", time=OLD)
        for days, text in enumerate(
            (
                "Ana drinks green tea",
                "ana drinks green tea.",
                "I live in Rome",
                "I live in Oslo",
                "likes boats",
                "is 40 years old",
            )
        ):
            memory.record_user_fact(text, user="ana", time=NOW - timedelta(days=9 - days))
        before, seq = memory.count(), memory.seq

        with memory.batch(actor="night") as batch:
            for group in batch.duplicates():
                print("duplicates:", " | ".join(str(record.content) for record in group.records))
                batch.merge(group.records, group.records[0].content)
        for found in memory.contradictions():
            print(f"contradiction: {found.attribute}, {' or '.join(found.values)}")
        done = memory.consolidate(timedelta(days=30), actor="night")
        for summary in done.groups:
            print(f"summarised: {len(summary.sources)} turns of {summary.key}")
        print(f"records: {before} before, {memory.count()} after")
        print("-", done.groups[0].text.splitlines()[0])

        memory.rollback(seq)
        print(f"taken back: {memory.count()} records")


if __name__ == "__main__":
    main()
