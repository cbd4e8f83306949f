"""Indexes: pure and in memory, without I/O. All they contain can be computed again from the records."""
