"""Facets, which lie beside the records of a memory: each has a folder with its records, operations, index and calls.

The engine knows them by what `registration` passes to it. Their commands and tools are listed in `recollect.cli` and
`recollect.server.mcp`.
"""
