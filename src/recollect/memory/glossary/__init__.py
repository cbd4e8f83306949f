"""The glossary of a memory: what the terms mean that an agent meets, with aliases, found exactly or by words."""
