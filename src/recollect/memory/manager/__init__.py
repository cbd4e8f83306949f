"""The manager: calls that put what a memory has in order, written against its other calls."""
