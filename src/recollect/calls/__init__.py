"""The calls that a memory, a batch and the facets share, as methods that build operations."""
