"""Servers of models: the HTTP client that embedders and language models share, and where the servers are."""
