"""The kernels compiled by numba, which is imported only in this package and the modules that use it."""
