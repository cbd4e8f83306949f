"""Keep a memory in a file: what one run of a program remembers, the next one recalls.

    python examples/persistent_memory.py [FILE]

The file is agent.db in the current folder unless you name another. Every record is on the disk when `remember` returns.
Recording the same fact again changes nothing, so the program may state its facts at every start.

Output of the first run:

    runs before this one: 0
    records: 3
    opened again: Ana's train to Bergen leaves at nine

Output of the second run:

    runs before this one: 1
    records: 4
    opened again: Ana's train to Bergen leaves at nine
"""

from __future__ import annotations

import sys

import recollect


def main(path: str) -> None:
    with recollect.open(path) as memory:
        runs = memory.count("kind=run")
        print("runs before this one:", runs)
        memory.record_user_fact("Ana's train to Bergen leaves at nine", user="ana")
        memory.record_knowledge("Platform 3 is closed in May.", source="station.txt")
        memory.remember(f"run {runs + 1}", kind="run")
        print("records:", memory.count())
        seq = memory.seq

    # The file is closed now. Another process would read the same records.
    with recollect.open(path) as memory:
        assert memory.seq == seq
        assert memory.check() == []  # every page, record and commit is intact
        print("opened again:", memory.recall("when does the train leave?", k=1)[0].record.text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "agent.db")
