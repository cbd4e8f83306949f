"""The SQLite store, in a single file."""
