"""Indexes: pure, in memory, no I/O. What they hold can always be computed again from the records."""
