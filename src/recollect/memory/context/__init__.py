"""Contexts: what a memory knows about a question, as a text for a prompt that never exceeds its budget of tokens.

`gathering` collects candidates by public calls of the memory, `excerpts` shortens long texts, `styles` formats what is
chosen, and `filling` chooses. `values` has the results. Nothing here stores or caches anything.
"""
