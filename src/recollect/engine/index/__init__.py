"""Keeping the word indexes and the vectors up to date with the ledger."""
