"""Write the frequencies of words in general language, src/recollect/text/frequencies/*.bin, from wordfreq's lists.

    pip install wordfreq==3.1.1                  # its lists are CC BY-SA 4.0, and so are the files
    python -m scripts.make_frequencies

A word counts for its stem, as in an index. Function words are left out: they are in no index. Frequencies are those
among the words that are left, rounded to levels, so that a file is small: a table of levels, and for each stem a hash
and its level. `recollect.text.background` describes the format and reads it.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter

from recollect.text.background import MAGIC, SCALE, TEXTS, WORDS, file_of, key_of
from recollect.text.languages import CODES
from recollect.text.words import terms

#: Number of words that are read of a list, and of stems that are kept.
READ, KEPT = 60_000, 10_000
#: Levels per factor of 2.
STEPS = 4


def frequencies(language: str) -> dict[str, float]:
    """Return the frequencies of stems, of all words that are no function words."""
    import wordfreq

    counts: Counter[str] = Counter()
    name = "nb" if language == "no" else language
    for word in wordfreq.top_n_list(name, READ):
        for term, _ in terms(word, language)[:1]:
            counts[term] += wordfreq.word_frequency(word, name)
    whole = sum(counts.values())
    return {term: count / whole for term, count in counts.most_common(KEPT)}


def expected(frequency: float) -> tuple[int, int]:
    """Return in how many of the texts a word is expected, and how often in all, both times SCALE."""
    texts = TEXTS * (1 - (1 - frequency) ** WORDS)
    return round(SCALE * texts), round(SCALE * TEXTS * WORDS * frequency)


def table(found: dict[str, float]) -> bytes:
    """Return the file of some frequencies."""
    level = {term: round(-STEPS * math.log2(frequency)) for term, frequency in found.items()}
    least, most = min(level.values()), max(level.values())
    pairs = [expected(2 ** (-each / STEPS)) for each in range(least, most + 1)]
    stems = sorted((key_of(term), each - least) for term, each in level.items() if pairs[each - least] != (0, 0))
    numbers = array("I", [len(pairs), len(stems)])
    for of in zip(*pairs, strict=True):
        numbers.extend(of)
    numbers.extend(key for key, _ in stems)
    if sys.byteorder == "big":
        numbers.byteswap()
    return MAGIC + numbers.tobytes() + bytes(each for _, each in stems)


def main() -> None:
    """Write the files of all languages with a stemmer."""
    for language in CODES:
        path = file_of(language)
        path.write_bytes(table(frequencies(language)))
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
