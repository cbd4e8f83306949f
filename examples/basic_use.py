"""Remember, recall, filter, change and forget, in a memory that exists only while the program runs.

    python examples/basic_use.py

Output:

    best answer: Ana prefers window seats
    about Ana: 2 records
    important: Ana prefers window seats
    changed: Ana prefers aisle seats
    after forgetting: 2 records
"""

from __future__ import annotations

import recollect
from recollect import filters as f


def main() -> None:
    with recollect.open(":memory:") as memory:
        seat = memory.record_user_fact("Ana prefers window seats", user="ana", importance=0.9)
        memory.record_user_fact("Ana is allergic to peanuts", user="ana", importance=0.4)
        memory.record_task("book a hotel in Oslo", "two nights, breakfast included", True, user="ben")

        hit = memory.recall("which seat should I book for Ana?", k=1)[0]
        print("best answer:", hit.record.text)

        # Filters are values, and every `where=` takes their text form, too.
        print("about Ana:", memory.count("user=ana"), "records")
        (important,) = memory.find(f.user("ana") & f.importance_at_least(0.5))
        print("important:", important.text)

        changed = memory.update(seat.id, content="Ana prefers aisle seats")
        print("changed:", changed.text)

        memory.forget(seat.id)
        print("after forgetting:", memory.count(), "records")


if __name__ == "__main__":
    main()
