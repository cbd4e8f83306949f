"""Benchmarks. Speed is measured here and not in the tests, each time compared with a peer in the same run.

`python -m bench` runs them (`bench.__main__`). Each is a module with a function that returns a dict, the one that
`--json` prints. Only the public interface of the package is used, unless a docstring says otherwise.
"""
