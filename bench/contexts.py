"""`python -m bench.contexts`: a context beside a recall with as many hits, in alternation. Milliseconds, and the ratio.

The memory has independent sentences of this machine, or, with --conversations, turns of two speakers in sessions of 25.
"""

from __future__ import annotations

import argparse
from statistics import median

import recollect
from bench.corpus import corpus, questions
from bench.measuring import milliseconds, one_core
from recollect.memory.context.gathering import HITS

_QUESTIONS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--conversations", action="store_true")
    given = parser.parse_args()
    one_core()
    texts = corpus().texts(given.records)
    with recollect.open(":memory:") as memory:
        memory.remember_all(
            {
                "content": text,
                **(
                    {"conversation": f"c{at // 500}", "session": str(at // 25), "position": at}
                    if given.conversations
                    else {}
                ),
            }
            for at, text in enumerate(texts)
        )
        asked = questions(texts, _QUESTIONS)
        for question in asked[:20]:
            memory.context(question, given.tokens)
        recalls, contexts, ratios = [], [], []
        for question in asked:
            recalls.append(milliseconds(memory.recall, question, HITS))
            contexts.append(milliseconds(memory.context, question, given.tokens))
            ratios.append(contexts[-1] / recalls[-1])
        sizes = [memory.context(question, given.tokens).tokens for question in asked[:20]]
    print(f"recall of {HITS} hits, p50      {median(recalls):.2f} ms")
    print(f"context of {given.tokens} tokens, p50   {median(contexts):.2f} ms (filled to {median(sizes):.0f} tokens)")
    print(f"ratio, p50 of pairs          {median(ratios):.2f}")


if __name__ == "__main__":
    main()
