"""Kernels: the functions that walk postings and compute shares, in C and in NumPy, with the same bits."""
