"""The inverted index: postings of terms in immutable segments and a small tail, and fuzzy matching of words."""
