"""Text: words, stems, trigrams. Pure functions of text, the same on every machine."""
