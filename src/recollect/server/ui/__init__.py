"""The inspector: pages on which people look at a memory and put it right.

`pages` has a function for each page, which returns what the page shows as plain JSON; `templates` make HTML of it.
Pages read the memory of one moment, so that looking counts as no use, and each of them can show the past. `actions` are
what people can change: ordinary operations, which the log has with an actor and a reason. Without tokens, the pages are
below a random path, which is then what a reader must know; with tokens, a script sends the token with each request.
"""
