"""This project's own torture of its SQLite store: kills, power cuts, failing disks, damage, interrupts, fuzzing.

It knows the store's insides, so it is no part of the package. `recollect.testing` is what other people's stores run.
"""
