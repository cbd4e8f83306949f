"""The socket daemon: one JSON object a line in, one a line out, over a Unix stream socket."""
