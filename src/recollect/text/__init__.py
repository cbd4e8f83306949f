"""Text analysis: words, stems, trigrams, dates. Pure functions of text, with the same results on every machine."""
