"""Embedders: models that convert texts to vectors. All are optional; recall works without any.

`hashed` is built in and has no dependencies. Each of the others needs a library, which is imported only in its own
module and only when a text is embedded. `environment` creates an embedder from "provider/model" text.
"""
