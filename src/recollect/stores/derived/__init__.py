"""Files next to a store that can be deleted and rebuilt at any time: segments, full text, vectors, usage."""
