"""Find records by vectors as well as by words, with the embedder that is built in.

    python examples/vector_memory.py

The embedder "hashed" needs no model and gives the same vectors on every machine. They compare spellings, not meanings.
For meanings, install a model and name it when you open the memory; the calls stay the same:

    recollect[model2vec]        embedder="model2vec/minishlab/potion-base-8M"
    recollect[embedding-http]   embedder="ollama/nomic-embed-text"

The first downloads a small model at its first use, the second needs a running Ollama. docs/vectors.md lists the
providers, and what their vectors add to words.

Output:

    embedded: 3
    coverage: 100 per cent of 3 records, 256 dimensions
    found by a misspelt question: The lighthouse keeper repairs the lantern
    found by a vector: True
"""

from __future__ import annotations

import recollect


def main() -> None:
    with recollect.open(":memory:", embedder="hashed") as memory:
        memory.remember_all(
            [
                "The lighthouse keeper repairs the lantern",
                "Bread rises faster in a warm kitchen",
                "The ferry to the island leaves at noon",
            ]
        )
        # `remember` calls no model. This embeds every text that has no vector yet.
        print("embedded:", memory.embed_all())
        stats = memory.vector_stats()
        print(
            f"coverage: {stats['coverage']:.0f} per cent of {stats['total']} records, {stats['dimensions']} dimensions"
        )

        hit = memory.recall("lighthous keepers repairing lanterns", k=1)[0]
        print("found by a misspelt question:", hit.record.text)
        print("found by a vector:", hit.why.shares.get("dense", 0) > 0)


if __name__ == "__main__":
    main()
