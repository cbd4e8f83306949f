"""Keyed memory: keys with bytes that agents share, with events, recall and a time to live."""
