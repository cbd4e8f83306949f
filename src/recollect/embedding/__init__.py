"""Embedders: what turns texts into vectors. All are optional; recall works without any.

`hashed` is built in and needs nothing. Each of the others needs a library, which is imported in that module alone and
only when a text is embedded. `environment` makes one from "provider/model" text.
"""
