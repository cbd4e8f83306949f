"""Servers: a memory for other programs. Each parses requests, calls the public API and renders the results."""
