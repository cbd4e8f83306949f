"""The engine: one table of operations over the write path, the read path and the indexes."""
