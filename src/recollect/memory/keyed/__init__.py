"""Keyed memory on a store: keys with bytes that agents share, in a namespace that belongs to the memory's."""
