"""Measurements. Speed is measured here and nowhere in the tests, each time against a peer in the same run."""
