"""The kernels compiled by numba, which is imported with this package and nowhere else."""
