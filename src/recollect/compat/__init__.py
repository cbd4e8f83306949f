"""Adapters for agent frameworks, and the names of other memory libraries. Each uses the public API only."""
