"""The inverted index: postings of terms, immutable segments and a small tail, and fuzzy matching of words."""
