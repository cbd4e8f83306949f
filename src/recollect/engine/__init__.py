"""The engine: executes operations with the write path, the read path and the indexes."""
