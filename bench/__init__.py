"""Measurements. Speed is measured here and nowhere in the tests, each time against a peer in the same run.

`python -m bench` has the commands (`bench.__main__`); each is a module with a function that gives a dict, the same that
`--json` prints. Only the public interface of the package is used.
"""
