"""Sparse codes: texts as 4096 bits by their character trigrams, found by the bits they share."""
