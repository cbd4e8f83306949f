"""In-memory search indexes: pure data structures without I/O, which can always be rebuilt from the records."""
