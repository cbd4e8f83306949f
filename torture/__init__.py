"""Torture of the SQLite store: kills, power cuts, failing disks, damage, interrupts, fuzzing.

It uses internals of the store, so it is not part of the package. `recollect.testing` has the tests for other stores.
"""
