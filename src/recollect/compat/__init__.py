"""Layers with the names of other memory libraries, for moving code over. Each uses the public API only."""
