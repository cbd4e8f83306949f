"""Encryption at rest: keys, the cipher of pages, and encrypted files."""
