"""Kernels: the functions that walk postings and compute shares, in NumPy and compiled by numba, with the same bits."""
