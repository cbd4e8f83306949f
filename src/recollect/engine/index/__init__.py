"""Keeping indexes up to date with the ledger: words and vectors."""
