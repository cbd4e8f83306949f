"""The kernels in C, compiled when the package is built; `library` and the modules that import it need that build."""
