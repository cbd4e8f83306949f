"""Kernels: what walks postings and computes shares, in NumPy and compiled by numba, to the same bits."""
